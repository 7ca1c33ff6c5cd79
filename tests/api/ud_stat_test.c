/* SPDX-License-Identifier: BSD-2-Clause */
/* What "anywarp stat" says of datagrams: sent, received, lost, dropped and why. */
#include "api/ud_kit.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char text[1 << 16];

static void tell(void)
{
    char command[256];
    const char *tool = getenv("ANYWARP");
    assert_non_null(tool);
    snprintf(command, sizeof(command), "%s stat %d 2>/dev/null", tool, (int)getpid());
    FILE *f = popen(command, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    assert_int_equal(pclose(f), 0);
}

/** Of @p p, @p words stand in its own line, or in the lines of its traffic. */
static void expect(const struct peer *p, const char *words)
{
    char name[32];
    snprintf(name, sizeof(name), "  qp 0x%06x ", p->qp->qp_num);
    char *from = strstr(text, name);
    assert_non_null(from);
    char *end = strstr(from + 1, "\n  qp "), *found = strstr(from, words);
    if (!found || (end && found > end))
        fail_msg("not \"%s\" of QP 0x%06x in:\n%s", words, p->qp->qp_num, text);
}

static void one(struct peer *from, uint32_t to, uint32_t qkey, uint32_t len)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(from, from, &sge, len);
    wr.wr.ud.remote_qpn = to;
    wr.wr.ud.remote_qkey = qkey;
    assert_int_equal(post(from, &wr), 0);
    sent(from);
}

static void stranger(const struct peer *p)
{
    struct sockaddr_in port = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)(p->qp->qp_num >> 8)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(sendto(fd, "hello", 5, 0, (struct sockaddr *)&port, sizeof(port)), 5);
    close(fd);
}

static void what_becomes_of_datagrams(void **state)
{
    time_t end = time(NULL) + WAIT_S;
    uint32_t b_number = b.qp->qp_num;
    (void)state;
    receive(&b, 0, 256);
    receive(&b, 0, 256);
    one(&a, b_number, QKEY + 1, 5); /* dropped before what is behind it comes */
    one(&a, b_number, QKEY + 1, 6);
    one(&a, b_number, QKEY, 7);
    one(&a, b_number, QKEY, 8);
    one(&a, 0x000123, QKEY, 9); /* nobody's */
    received(&b, 0);
    received(&b, 0);
    tell();
    expect(&a, " type UD ");
    expect(&a, " lost 1\n");
    expect(&a, "    out iwOutRdmaSends 4 iwOutRdmaSendBytes 26\n");
    expect(&b, " dropped q_key 2\n");
    expect(&b, "    in iwInRdmaSends 2 iwInRdmaSendBytes 15\n");
    one(&a, b_number, QKEY, 1); /* waits for a receive that is not posted */
    stranger(&b);
    while (!strstr(text, " dropped no_receive 1 q_key 2 not_ours 1\n") && time(NULL) < end)
        tell();
    expect(&b, " dropped no_receive 1 q_key 2 not_ours 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_becomes_of_datagrams, setup, teardown),
    };
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    open_device("r0", 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_device();
    return failed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether CRC is asked for: by ANYWARP_CRC, and whether both ends are this host. */
#include "cm/endpoint.h"
#include "env/conf.h"
#include "vectors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/** @return the IPv4 address @p text, port 0 */
static struct sockaddr_in ipv4(const char *text)
{
    struct sockaddr_in sin = {.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, text, &sin.sin_addr), 1);
    return sin;
}

static void addresses_of_this_host(void **state)
{
    static const struct {
        const char *client, *server;
    } rows[] = {{"127.0.0.1", "127.0.0.1"}, {"127.0.0.1", "127.1.2.3"}, {"127.9.9.9", "127.0.0.1"}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sockaddr_in from = ipv4(rows[i].client), to = ipv4(rows[i].server);
        socklen_t len = sizeof(to);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &len), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
        assert_false(iw_cm_same_host(fd)); /* with nobody yet */
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
        if (!iw_cm_same_host(fd))
            fail_msg("row %zu", i);
        close(fd);
        close(listener);
    }
    assert_false(iw_cm_same_host(-1));
}

static void who_asks_for_crc(void **state)
{
    static const struct {
        const char *knob;
        bool same_host, wants;
    } rows[] = {
        {"auto", false, true}, {"auto", true, false}, {"on", false, true},
        {"on", true, true},    {"off", false, false}, {"off", true, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) { /* the knobs are read once a process */
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            static struct iw_cm cm;
            setenv("ANYWARP_CRC", rows[i].knob, 1);
            cm.same_host = rows[i].same_host;
            _exit(iw_cm_wants_crc(&cm) == rows[i].wants ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status)
            fail_msg("row %zu: status %d", i, status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_this_host),
        cmocka_unit_test(who_asks_for_crc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

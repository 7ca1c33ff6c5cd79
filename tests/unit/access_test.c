/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/access.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NO      IW_ACCESS_NO
#define YES     IW_ACCESS_YES
#define DEPENDS IW_ACCESS_DEPENDS

static char path[] = "/tmp/access_test.XXXXXX";

static void write_rules(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static enum iw_access ask(bool to, const char *peer, uint16_t port, const char *identity, char *why)
{
    struct sockaddr_storage addr = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&addr;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&addr;
    addr.ss_family = strchr(peer, ':') ? AF_INET6 : AF_INET;
    assert_int_equal(
        inet_pton(addr.ss_family, peer,
                  addr.ss_family == AF_INET ? (void *)&four->sin_addr : (void *)&six->sin6_addr),
        1);
    struct iw_access_ask a = {.to = to, .peer = &addr, .port = port, .identity = identity};
    return iw_access(&a, why);
}

static const struct {
    const char *rules, *peer;
    bool to;
    uint16_t port;
    const char *identity;
    enum iw_access expect;
} rows[] = {
    {"", "10.1.2.3", false, 7, NULL, NO},
    {"# nothing\n\n  \n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from any\n", "10.1.2.3", false, 7, NULL, YES},
    {"allow from any", "fd00::1", false, 7, "", YES},
    {"allow from any\n", "10.1.2.3", true, 7, NULL, NO},
    {"allow to any\n", "10.1.2.3", true, 7, NULL, YES},
    /* networks */
    {"allow from 10.0.0.0/8\n", "10.255.2.3", false, 7, NULL, YES},
    {"allow from 10.0.0.0/8\n", "11.0.0.0", false, 7, NULL, NO},
    {"allow from 10.1.2.3\n", "10.1.2.3", false, 7, NULL, YES},
    {"allow from 10.1.2.3\n", "10.1.2.2", false, 7, NULL, NO},
    {"allow from 10.1.2.0/23\n", "10.1.3.255", false, 7, NULL, YES},
    {"allow from 10.1.2.0/23\n", "10.1.4.0", false, 7, NULL, NO},
    {"allow from 0.0.0.0/0\n", "192.0.2.1", false, 7, NULL, YES},
    {"allow from 0.0.0.0/0\n", "fd00::1", false, 7, NULL, NO},
    {"allow from 10.0.0.0/8\n", "::ffff:10.1.2.3", false, 7, NULL, YES},
    {"allow from fd00::/8\n", "fdff::1", false, 7, NULL, YES},
    {"allow from fd00::/8\n", "fe80::1", false, 7, NULL, NO},
    {"allow from ::1\n", "::1", false, 7, NULL, YES},
    {"allow from ::/0\n", "10.1.2.3", false, 7, NULL, YES},
    /* ports */
    {"allow from any port 7471\n", "10.1.2.3", false, 7471, NULL, YES},
    {"allow from any port 7471\n", "10.1.2.3", false, 7472, NULL, NO},
    {"allow from any port 7000-7999\n", "10.1.2.3", false, 7999, NULL, YES},
    {"allow from any port 7000-7999\n", "10.1.2.3", false, 8000, NULL, NO},
    /* the first that fits */
    {"deny from 10.1.2.3\nallow from any\n", "10.1.2.3", false, 7, NULL, NO},
    {"deny from 10.1.2.3\nallow from any\n", "10.1.2.4", false, 7, NULL, YES},
    {"allow from any\ndeny from any\n", "10.1.2.4", false, 7, NULL, YES},
    /* identities */
    {"allow from any identity CN=a\n", "10.1.2.3", false, 7, NULL, DEPENDS},
    {"allow from any identity CN=a\n", "10.1.2.3", false, 7, "CN=a", YES},
    {"allow from any identity CN=a\n", "10.1.2.3", false, 7, "CN=ab", NO},
    {"allow from any identity CN=a\n", "10.1.2.3", false, 7, "", NO},
    {"allow from any identity *\n", "10.1.2.3", false, 7, "", NO},
    {"allow from any identity *\n", "10.1.2.3", false, 7, "psk:x", YES},
    {"allow from any identity CN=a b,O=c  \n", "10.1.2.3", false, 7, "CN=a b,O=c", YES},
    {"allow from any identity CN=w*,O=c\n", "10.1.2.3", false, 7, "CN=w1,O=d,O=c", YES},
    {"allow from any identity CN=w*,O=c\n", "10.1.2.3", false, 7, "CN=w1,O=cc", NO},
    {"allow from any identity *a*b*\n", "10.1.2.3", false, 7, "xaxxbx", YES},
    {"allow from any identity *a*b*\n", "10.1.2.3", false, 7, "xbxa", NO},
    {"deny from any identity CN=a\nallow from any\n", "10.1.2.3", false, 7, NULL, DEPENDS},
    {"deny from any identity CN=a\nallow from any\n", "10.1.2.3", false, 7, "CN=b", YES},
    {"allow from 11.0.0.0/8 identity CN=a\nallow from any\n", "10.1.2.3", false, 7, NULL, YES},
    {"allow from any port 7 identity CN=a\n", "10.1.2.3", false, 7, "CN=a", YES},
    /* what is not understood refuses everybody, also behind the line that fits */
    {"allow from any\nallow\n", "10.1.2.3", false, 7, NULL, NO},
    {"permit from any\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow at any\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from 10.0.0.0/33\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from 10.0.0.0/\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from 10.0.0/8\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from fd00::/129\n", "fd00::1", false, 7, NULL, NO},
    {"allow from any port\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from any port 9-8\n", "10.1.2.3", false, 8, NULL, NO},
    {"allow from any port 65536\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from any port -1\n", "10.1.2.3", false, 7, NULL, NO},
    {"allow from any identity\n", "10.1.2.3", false, 7, "CN=a", NO},
    {"allow from any identity   \n", "10.1.2.3", false, 7, "CN=a", NO},
    {"allow from any else\n", "10.1.2.3", false, 7, NULL, NO},
};

static void every_rule(void **state)
{
    char why[IW_ACCESS_WHY_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_rules(rows[i].rules);
        why[0] = 0;
        enum iw_access v = ask(rows[i].to, rows[i].peer, rows[i].port, rows[i].identity, why);
        if (v != rows[i].expect)
            fail_msg("%s: %d for %s (%s), \"%s\"", rows[i].rules, v, rows[i].peer,
                     rows[i].identity ? rows[i].identity : "-", why);
        if (v == NO)
            assert_non_null(strstr(why, path));
    }
}

static void the_line_is_named(void **state)
{
    char why[IW_ACCESS_WHY_MAX];
    (void)state;
    write_rules("# a\ndeny from 10.0.0.0/8\nallow from any\n");
    assert_int_equal(ask(false, "10.0.0.1", 7, NULL, why), NO);
    assert_non_null(strstr(why, "line 2 of"));
    write_rules("allow from any\nallow from none\n");
    assert_int_equal(ask(false, "10.0.0.1", 7, NULL, why), NO);
    assert_non_null(strstr(why, "line 2 is not understood"));
}

/** The next decision is by the file as it is then. */
static void it_is_read_again(void **state)
{
    char why[IW_ACCESS_WHY_MAX];
    (void)state;
    write_rules("allow from any\n");
    assert_int_equal(ask(false, "10.0.0.1", 7, NULL, why), YES);
    write_rules("allow to any\n");
    assert_int_equal(ask(false, "10.0.0.1", 7, NULL, why), NO);
    assert_int_equal(ask(true, "10.0.0.1", 7, NULL, why), YES);
}

static void a_file_that_others_write(void **state)
{
    char why[IW_ACCESS_WHY_MAX];
    (void)state;
    write_rules("allow from any\n");
    chmod(path, 0620);
    assert_int_equal(ask(false, "10.0.0.1", 7, NULL, why), NO);
    assert_non_null(strstr(why, "others may write it"));
    assert_false(iw_access_usable(path, why));
    chmod(path, 0644);
    assert_true(iw_access_usable(path, why));
}

static void a_line_without_end(void **state)
{
    char why[IW_ACCESS_WHY_MAX], text[2000];
    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, "allow from any identity ", 24);
    text[sizeof(text) - 1] = 0;
    write_rules(text);
    assert_int_equal(ask(false, "10.0.0.1", 7, "CN=a", why), NO);
    assert_non_null(strstr(why, "line 1 is not understood"));
}

static void no_file(void **state)
{
    char why[IW_ACCESS_WHY_MAX];
    (void)state;
    unlink(path);
    assert_int_equal(ask(false, "10.0.0.1", 7, NULL, why), NO);
    assert_non_null(strstr(why, "cannot be opened"));
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    close(fd);
    setenv("ANYWARP_ACCESS", path, 1);
    return fd < 0;
}

static int drop_file(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule),         cmocka_unit_test(the_line_is_named),
        cmocka_unit_test(it_is_read_again),   cmocka_unit_test(a_file_that_others_write),
        cmocka_unit_test(a_line_without_end), cmocka_unit_test(no_file),
    };
    return cmocka_run_group_tests(tests, make_file, drop_file);
}

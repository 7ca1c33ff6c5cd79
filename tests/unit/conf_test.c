/* SPDX-License-Identifier: BSD-2-Clause */
/* The knobs are read once a process: every row runs in a child of its own. */
#include "env/conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DEFAULTS                                                                                   \
    .ext = true, .shm_bytes = 1048576, .connect_ms = 20000, .silence_s = 60, .spin_us = 50,        \
    .stats = true, .pcap_mb = 64, .faults = true

/* Each row changes one of them. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define TEN       "0123456789"
#define FIFTY     TEN TEN TEN TEN TEN
#define LONG_NAME FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY

static const struct {
    const char *name, *value; /* NULL: nothing is set */
    bool reported;
    struct iw_conf expect;
} rows[] = {
    {NULL, NULL, false, {DEFAULTS}},
    {"ANYWARP_CRC", "auto", false, {DEFAULTS}},
    {"ANYWARP_CRC", "on", false, {DEFAULTS, .crc = IW_ON}},
    {"ANYWARP_CRC", "off", false, {DEFAULTS, .crc = IW_OFF}},
    {"ANYWARP_CRC", "maybe", true, {DEFAULTS}},
    {"ANYWARP_CRC", "", false, {DEFAULTS}},
    {"ANYWARP_SHM", "on", false, {DEFAULTS}},
    {"ANYWARP_SHM", "off", false, {DEFAULTS, .shm_bytes = 0}},
    {"ANYWARP_SHM", "65536", false, {DEFAULTS, .shm_bytes = 65536}},
    {"ANYWARP_SHM", "16777216", false, {DEFAULTS, .shm_bytes = 16777216}},
    {"ANYWARP_SHM", "32768", true, {DEFAULTS}},
    {"ANYWARP_SHM", "33554432", true, {DEFAULTS}},
    {"ANYWARP_SHM", "100000", true, {DEFAULTS}},
    {"ANYWARP_SHM", "auto", true, {DEFAULTS}},
    {"ANYWARP_FPDU", "auto", false, {DEFAULTS}},
    {"ANYWARP_FPDU", "mss", false, {DEFAULTS, .fpdu = IW_ON}},
    {"ANYWARP_FPDU", "128", false, {DEFAULTS, .fpdu = IW_OFF, .fpdu_bytes = 128}},
    {"ANYWARP_FPDU", "64768", false, {DEFAULTS, .fpdu = IW_OFF, .fpdu_bytes = 64768}},
    {"ANYWARP_FPDU", "127", true, {DEFAULTS}},
    {"ANYWARP_FPDU", "64769", true, {DEFAULTS}},
    {"ANYWARP_FPDU", "1448x", true, {DEFAULTS}},
    {"ANYWARP_FPDU", "-1448", true, {DEFAULTS}},
    {"ANYWARP_FPDU", "99999999999999999999", true, {DEFAULTS}},
    {"ANYWARP_EXT", "on", false, {DEFAULTS}},
    {"ANYWARP_EXT", "off", false, {DEFAULTS, .ext = false}},
    {"ANYWARP_EXT", "no", true, {DEFAULTS}},
    {"ANYWARP_PORTS", "1024", false, {DEFAULTS, .port_low = 1024, .port_high = 1024}},
    {"ANYWARP_PORTS", "20000-65535", false, {DEFAULTS, .port_low = 20000, .port_high = 65535}},
    {"ANYWARP_PORTS", "1023", true, {DEFAULTS}},
    {"ANYWARP_PORTS", "20000-65536", true, {DEFAULTS}},
    {"ANYWARP_PORTS", "20000-19999", true, {DEFAULTS}},
    {"ANYWARP_PORTS", "20000-", true, {DEFAULTS}},
    {"ANYWARP_PORTS", "-20000", true, {DEFAULTS}},
    {"ANYWARP_PORTS", "20000-20001-2", true, {DEFAULTS}},
    {"ANYWARP_CONNECT_MS", "100", false, {DEFAULTS, .connect_ms = 100}},
    {"ANYWARP_CONNECT_MS", "600000", false, {DEFAULTS, .connect_ms = 600000}},
    {"ANYWARP_CONNECT_MS", "99", true, {DEFAULTS}},
    {"ANYWARP_CONNECT_MS", "600001", true, {DEFAULTS}},
    {"ANYWARP_SILENCE_S", "6", false, {DEFAULTS, .silence_s = 6}},
    {"ANYWARP_SILENCE_S", "3600", false, {DEFAULTS, .silence_s = 3600}},
    {"ANYWARP_SILENCE_S", "5", true, {DEFAULTS}},
    {"ANYWARP_SILENCE_S", "3601", true, {DEFAULTS}},
    {"ANYWARP_SPIN_US", "0", false, {DEFAULTS, .spin_us = 0}},
    {"ANYWARP_SPIN_US", "1000000", false, {DEFAULTS, .spin_us = 1000000}},
    {"ANYWARP_SPIN_US", "1000001", true, {DEFAULTS}},
    {"ANYWARP_SPIN_US", " 5", true, {DEFAULTS}},
    {"ANYWARP_CONGESTION", "bbr", false, {DEFAULTS, .congestion = "bbr"}},
    {"ANYWARP_CONGESTION", "fifteen_letters", false, {DEFAULTS, .congestion = "fifteen_letters"}},
    {"ANYWARP_CONGESTION", "sixteen__letters", true, {DEFAULTS}},
    {"ANYWARP_STATS", "on", false, {DEFAULTS}},
    {"ANYWARP_STATS", "off", false, {DEFAULTS, .stats = false}},
    {"ANYWARP_STATS", "/here", false, {DEFAULTS, .stats_dir = "/here"}},
    {"ANYWARP_STATS", "here", true, {DEFAULTS}},
    {"ANYWARP_PCAP", "a.pcapng", false, {DEFAULTS, .pcap = "a.pcapng"}},
    {"ANYWARP_PCAP_MB", "1", false, {DEFAULTS, .pcap_mb = 1}},
    {"ANYWARP_PCAP_MB", "0", true, {DEFAULTS}},
    {"ANYWARP_PCAP_MB", "1000001", true, {DEFAULTS}},
    {"ANYWARP_RECORD", "a.record", false, {DEFAULTS, .record = "a.record"}},
    {"ANYWARP_RECORD", LONG_NAME, true, {DEFAULTS}},
    {"ANYWARP_FAULTS", "off", false, {DEFAULTS, .faults = false}},
    {"ANYWARP_FAULTS", "0", true, {DEFAULTS}},
    {"ANYWARP_DEVICES", "aw0=eth0 aw1=eth1", false, {DEFAULTS, .devices = "aw0=eth0 aw1=eth1"}},
    {"ANYWARP_TLS", "off", false, {DEFAULTS}},
    {"ANYWARP_TLS", "allow", false, {DEFAULTS, .tls = IW_TLS_ALLOW}},
    {"ANYWARP_TLS", "require", false, {DEFAULTS, .tls = IW_TLS_REQUIRE}},
    {"ANYWARP_TLS", "required", true, {DEFAULTS, .tls = IW_TLS_REQUIRE}}, /* not in the clear */
    {"ANYWARP_TLS_CERT", "a", false, {DEFAULTS, .tls_cert = "a"}},
    {"ANYWARP_TLS_KEY", "a", false, {DEFAULTS, .tls_key = "a"}},
    {"ANYWARP_TLS_CA", "a", false, {DEFAULTS, .tls_ca = "a"}},
    {"ANYWARP_TLS_PSK", "a", false, {DEFAULTS, .tls_psk = "a"}},
    {"ANYWARP_ACCESS", "a", false, {DEFAULTS, .access = "a"}},
    {"ANYWARP_ACCESS", LONG_NAME, true, {DEFAULTS, .access = "/dev/null/ANYWARP_ACCESS"}},
    {"ANYWARP_LIKE", "", false, {DEFAULTS}},
    {"ANYWARP_LIKE", "anywarp", true, {DEFAULTS}},
};

static bool same(const struct iw_conf *a, const struct iw_conf *b)
{
    return a->crc == b->crc && a->fpdu == b->fpdu && a->fpdu_bytes == b->fpdu_bytes &&
           a->ext == b->ext && a->shm_bytes == b->shm_bytes && a->spin_us == b->spin_us &&
           a->connect_ms == b->connect_ms && a->silence_s == b->silence_s &&
           !strcmp(a->congestion, b->congestion) && !strcmp(a->devices, b->devices) &&
           a->stats == b->stats && !strcmp(a->stats_dir, b->stats_dir) &&
           !strcmp(a->record, b->record) && !strcmp(a->pcap, b->pcap) && a->pcap_mb == b->pcap_mb &&
           a->faults == b->faults && a->tls == b->tls && !strcmp(a->tls_cert, b->tls_cert) &&
           !strcmp(a->tls_key, b->tls_key) && !strcmp(a->tls_ca, b->tls_ca) &&
           !strcmp(a->tls_psk, b->tls_psk) && !strcmp(a->access, b->access);
}

/** @return 0 if the knobs are as the row says, also when asked for again */
static int child(size_t i, int err)
{
    dup2(err, STDERR_FILENO);
    setenv("VERBS_LOG_LEVEL", "2", 1);
    unsetenv("VERBS_LOG_FILE");
    if (rows[i].name)
        setenv(rows[i].name, rows[i].value, 1);
    const struct iw_conf *first = iw_conf();
    return !same(first, &rows[i].expect) || iw_conf() != first;
}

static void each_knob(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[1024] = "";
        int status, fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(i, fds[1]));
        close(fds[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        ssize_t n = read(fds[0], text, sizeof(text) - 1);
        close(fds[0]);
        const char *newline = strchr(text, '\n');
        bool one_line = newline && !newline[1] && strstr(text, rows[i].name ? rows[i].name : "?");
        if (status || (rows[i].reported ? !one_line : n != 0))
            fail_msg("%s=%s: status 0x%x, log: %s", rows[i].name, rows[i].value, status, text);
    }
}

/* Those that it may be like are a table of pointers, which no row above can have. */
static void each_adapter(void **state)
{
    (void)state;
    size_t n, m;
    const struct iw_adapter *a = iw_adapters(&n);
    const struct iw_knob *k = iw_knobs(&m);
    while (strcmp(k->name, "ANYWARP_LIKE") != 0)
        k++;
    for (size_t i = 0; i < n; i++) {
        struct iw_conf conf = {0};
        assert_true(k->parse(&conf, a[i].name));
        assert_ptr_equal(conf.like, &a[i]);
        for (enum iw_limit l = 0; l < IW_LIMITS; l++)
            assert_true(a[i].limit[l].source || !a[i].limit[l].value);
    }
}

/* What cannot be stored as it stands in the table would silently be something else. */
static void each_default(void **state)
{
    (void)state;
    size_t n;
    const struct iw_knob *k = iw_knobs(&n);
    for (const struct iw_knob *end = k + n; k < end; k++) {
        assert_true(iw_knob_legal(k, ""));
        assert_true(!k->initial || iw_knob_legal(k, k->initial));
    }
}

static void judging_changes_nothing(void **state)
{
    (void)state;
    size_t n;
    struct iw_conf before = *iw_conf();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct iw_knob *k = iw_knobs(&n), *end = k + n;
        while (k < end && rows[i].name && strcmp(k->name, rows[i].name) != 0)
            k++;
        assert_true(k < end);
        if (rows[i].name && iw_knob_legal(k, rows[i].value) == rows[i].reported)
            fail_msg("%s=%s is judged otherwise", rows[i].name, rows[i].value);
    }
    assert_true(same(iw_conf(), &before));
}

int main(void)
{
    static const char *const names[] = {
        "ANYWARP_CRC",        "ANYWARP_FPDU",       "ANYWARP_EXT",      "ANYWARP_SPIN_US",
        "ANYWARP_CONNECT_MS", "ANYWARP_CONGESTION", "ANYWARP_DEVICES",  "ANYWARP_STATS",
        "ANYWARP_PCAP",       "ANYWARP_PCAP_MB",    "ANYWARP_FAULTS",   "ANYWARP_SILENCE_S",
        "ANYWARP_LIKE",       "ANYWARP_TLS",        "ANYWARP_TLS_CERT", "ANYWARP_TLS_KEY",
        "ANYWARP_TLS_CA",     "ANYWARP_TLS_PSK",    "ANYWARP_ACCESS",   "ANYWARP_PORTS",
        "ANYWARP_SHM",        "ANYWARP_RECORD"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_knob),
        cmocka_unit_test(each_adapter),
        cmocka_unit_test(each_default),
        cmocka_unit_test(judging_changes_nothing),
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

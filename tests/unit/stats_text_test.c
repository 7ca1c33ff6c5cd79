/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics as lines and as JSON, to the letter. */
#include "tools/stats_text.h"
#include "wire/error.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* In place of the tool's own. */
void tool_die(int status, const char *fmt, ...);
void tool_die(int status, const char *fmt, ...)
{
    (void)fmt;
    _Exit(status);
}

/* Of the counters of JSON, which tell all, those that are not 0 are looked at. */
static void drop_zeros(char *text)
{
    for (char *end, *at = text; (at = strstr(at, "\"iw"));) {
        end = strpbrk(at, ",}");
        assert_non_null(end);
        if (strncmp(end - 3, ": 0", 3) == 0 && *end == ',')
            memmove(at, end + 2, strlen(end + 2) + 1);
        else
            at = end;
    }
}

static void expect(void (*print)(FILE *, const struct stats *), const struct stats *s,
                   const char *wanted)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    assert_non_null(f);
    print(f, s);
    assert_int_equal(fclose(f), 0);
    drop_zeros(text);
    assert_string_equal(text, wanted);
    free(text);
}

static struct stats_qp connected(void)
{
    struct stats_qp q = {
        .qp_num = 0x11,
        .ird = 16,
        .ord = 8,
        .local_port = 7174,
        .peer_port = 40000,
        .sq = {.size = 4, .used = 3, .ring = 1, .kind = STATS_UC | STATS_ROCE},
        .rq = {.size = 8, .used = 2, .held = 1, .held_bytes = 64},
        .send_cq = 1,
        .recv_cq = 2,
        .flags = STATS_LINKED | STATS_CRC | STATS_INITIATOR | STATS_P2P,
        .rev = 2,
        .state = 3,
        .binds = 4,
        .tls = {.cipher = "C", .identity = "CN=a\tb"},
        .error = IW_ERR_CRC,
        .out.messages[IWC_KIND_WRITE] = 5,
        .out.bytes[IWC_KIND_WRITE] = 5000000000,
        .in.fpdus = 6,
    };
    inet_pton(AF_INET, "192.0.2.1", q.local);
    inet_pton(AF_INET, "192.0.2.2", q.peer);
    return q;
}

static struct stats_listener listeners[] = {
    {.id = 1, .local = {192, 0, 2, 1}, .local_port = 7174, .backlog = 4, .waiting = 3},
    {.id = 2, .local_port = 80, .flags = STATS_IPV6, .backlog = 1},
};

static struct stats process(struct stats_qp qps[2], struct stats_cq cqs[2],
                            struct stats_error *error)
{
    struct stats s = {
        .owner.pid = 42,
        .life = STATS_ENDED,
        .head = {.began = 86400 * UINT64_C(1000000000),
                 .release = "1.0",
                 .command = "a \"b\"\33",
                 .devices = "anywarp0",
                 .gauge = {[STATS_pd] = 1, [STATS_qp] = 2, [STATS_errors] = -1, [STATS_binds] = 9}},
        .cqs = cqs,
        .listeners = listeners,
        .qps = qps,
        .errors = error,
        .ncqs = 2,
        .nlisteners = 2,
        .nqps = 2,
        .nerrors = 1,
        .out.messages[IWC_KIND_SEND] = 3,
        .in.invalidates = 7,
        .binds = 13,
    };
    qps[0] = connected();
    qps[1] = (struct stats_qp){.qp_num = 0x12, .state = 9, .rq.tcp = STATS_TCP_USER};
    cqs[0] = (struct stats_cq){.id = 1, .cqe = 255, .head = UINT32_MAX, .tail = 1};
    cqs[1] = (struct stats_cq){.id = 2, .cqe = 16};
    *error = (struct stats_error){.qp_num = 0x11, .at = 1000000000, .text = "it\tbroke"};
    return s;
}

static void lines(void **state)
{
    (void)state;
    struct stats_qp qps[2];
    struct stats_cq cqs[2];
    struct stats_error error;
    struct stats s = process(qps, cqs, &error);
    expect(stats_print, &s,
           "process 42 command a \"b\"? state ended since 1970-01-02T00:00:00Z release 1.0 "
           "devices anywarp0\n"
           "  objects pd 1 qp 2 errors -1\n"
           "  in iwInRdmaInvalidates 7\n"
           "  out iwOutRdmaSends 3\n"
           "  iwRdmaBnd 13 iwRdmaInv 7\n"
           "  cq 1 cqe 255 depth 2 completions 1\n"
           "  cq 2 cqe 16 depth 0 completions 0\n"
           "  listener 192.0.2.1:7174 waiting 3/4\n"
           "  listener [::]:80 waiting 0/1\n"
           "  qp 0x000011 state RTS local 192.0.2.1:7174 peer 192.0.2.2:40000 side active mpa 2 "
           "crc on markers off ird 16 ord 8 anywarp no rings out tls C identity \"CN=a?b\" "
           "type UC device RoCE send_cq 1 recv_cq 2 sq 3/4 rq 2/8 held 1 (64 bytes) iwRdmaBnd 4\n"
           "    in iwInFpdus 6\n"
           "    out iwOutRdmaWrites 5 iwOutRdmaWriteBytes 5000000000\n"
           "    cause received CRC does not match\n"
           "  qp 0x000012 state ? rings none (user) type RC device iWARP send_cq 0 recv_cq 0\n"
           "  error 1970-01-01T00:00:01Z qp 0x000011: it?broke\n");
}

static void a_line_a_process(void **state)
{
    (void)state;
    struct stats_qp qps[2];
    struct stats_cq cqs[2];
    struct stats_error error;
    struct stats s = process(qps, cqs, &error), nothing = {.owner.pid = 7, .head.command = "idle"};
    expect(stats_print_line, &s,
           "process 42 command a \"b\"? state ended qp 2 connected 1 failed 1 "
           "out 3 messages 0 bytes listeners 2 waiting 3 held 1 errors -1\n");
    expect(stats_print_line, &nothing, "process 7 command idle state alive\n");
    s.exited = true;
    expect(stats_print_errors, &s,
           "process 42 command a \"b\"? state exited\n"
           "  error 1970-01-01T00:00:01Z qp 0x000011: it?broke\n");
}

static void json(void **state)
{
    (void)state;
    struct stats_qp qps[2];
    struct stats_cq cqs[2];
    struct stats_error error;
    struct stats s = process(qps, cqs, &error);
    expect(
        stats_print_json, &s,
        "{\"pid\": 42, \"command\": \"a \\\"b\\\"\\u001b\", \"state\": \"ended\", "
        "\"since\": \"1970-01-02T00:00:00Z\", \"release\": \"1.0\", \"devices\": \"anywarp0\",\n"
        "  \"objects\": {\"pd\": 1, \"mr\": 0, \"mr_bytes\": 0, \"mw\": 0, \"cq\": 0, \"srq\": 0, "
        "\"qp\": 2, \"connects\": 0, \"accepts\": 0, \"errors\": -1},\n"
        "  "
        "\"counters\": {\"iwOutRdmaSends\": 3, \"iwInRdmaInvalidates\": 7, \"iwRdmaBnd\": 13, "
        "\"iwRdmaInv\": 7}"
        ",\n"
        "  \"cqs\": [{\"id\": 1, \"cqe\": 255, \"depth\": 2, \"completions\": 1}, "
        "{\"id\": 2, \"cqe\": 16, \"depth\": 0, \"completions\": 0}],\n"
        "  \"listeners\": [{\"local\": \"192.0.2.1:7174\", \"waiting\": 3, \"backlog\": 4}, "
        "{\"local\": \"[::]:80\", \"waiting\": 0, \"backlog\": 1}],\n"
        "  \"qps\": [{\"qpn\": 17, \"type\": \"UC\", \"device\": \"RoCE\", \"state\": \"RTS\", "
        "\"local\": \"192.0.2.1:7174\", "
        "\"peer\": \"192.0.2.2:40000\", \"active\": true, \"mpa\": 2, \"crc\": true, "
        "\"markers\": false, \"p2p\": true, \"ird\": 16, \"ord\": 8, \"anywarp\": false, "
        "\"rings\": \"out\", \"no_rings\": null, \"cipher\": \"C\", \"identity\": "
        "\"CN=a\\u0009b\", "
        "\"send_cq\": 1, \"recv_cq\": 2, \"cause\": \"received CRC does not match\", "
        "\"sq\": 3, \"sq_size\": 4, \"rq\": 2, \"rq_size\": 8, \"held\": 1, \"held_bytes\": 64, "
        "\"counters\": {\"iwOutRdmaWrites\": 5, "
        "\"iwOutRdmaWriteBytes\": 5000000000, \"iwInFpdus\": 6, \"iwRdmaBnd\": 4, \"iwRdmaInv\": 0}"
        "},\n"
        "    {\"qpn\": 18, \"type\": \"RC\", \"device\": \"iWARP\", \"state\": \"?\", \"send_cq\": "
        "0, \"recv_cq\": 0, \"cause\": null, "
        "\"sq\": 0, \"sq_size\": 0, \"rq\": 0, \"rq_size\": 0, \"held\": 0, \"held_bytes\": 0, "
        "\"counters\": {\"iwRdmaInv\": 0}"
        "}],\n"
        "  \"errors\": [{\"at\": \"1970-01-01T00:00:01Z\", \"qpn\": 17, "
        "\"text\": \"it\\u0009broke\"}]}");
}

/** A QP of datagrams says what it lost, and why. */
static void datagrams(void **state)
{
    (void)state;
    struct stats_qp q = {.qp_num = 0x13, .state = 3, .sq = {.kind = STATS_UD}};
    struct stats s = {.head.command = "d", .head.began = 0, .qps = &q, .nqps = 1};
    expect(stats_print, &s,
           "process 0 command d state alive since 1970-01-01T00:00:00Z release  devices \n"
           "  qp 0x000013 state RTS type UD device iWARP send_cq 0 recv_cq 0\n");
    q.sq.lost = 5;
    q.rq.dropped[STATS_DROP_NO_RECEIVE] = 6;
    q.rq.dropped[STATS_DROP_NOT_OURS] = UINT64_C(1) << 32;
    expect(stats_print, &s,
           "process 0 command d state alive since 1970-01-01T00:00:00Z release  devices \n"
           "  qp 0x000013 state RTS type UD device iWARP send_cq 0 recv_cq 0 lost 5 dropped "
           "no_receive 6 not_ours 4294967296\n");
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    assert_non_null(f);
    stats_print_json(f, &s);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "\"held_bytes\": 0, \"lost\": 5, \"dropped\": {\"no_receive\": 6, "
                                 "\"q_key\": 0, \"refused\": 0, \"not_ours\": 4294967296}, "));
    free(text);
}

static void endpoints(void **state)
{
    (void)state;
    char text[STATS_ENDPOINT_MAX];
    struct stats_qp q = connected();
    stats_endpoint(&q, false, text);
    assert_string_equal(text, "192.0.2.1:7174");
    stats_endpoint(&q, true, text);
    assert_string_equal(text, "192.0.2.2:40000");
    q.flags |= STATS_IPV6;
    inet_pton(AF_INET6, "2001:db8::9", q.peer);
    stats_endpoint(&q, true, text);
    assert_string_equal(text, "[2001:db8::9]:40000");
    q.flags = 0;
    stats_endpoint(&q, true, text);
    assert_string_equal(text, "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),     cmocka_unit_test(a_line_a_process), cmocka_unit_test(json),
        cmocka_unit_test(datagrams), cmocka_unit_test(endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

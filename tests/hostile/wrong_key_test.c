/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys and addresses that are not the peer's to use: guessed, of another domain, without the right,
 * past the ends, around the end of the address space, taken away (RFC 5042 sections 6.1.1, 6.3.1,
 * 6.3.5). Each ends the connection, and not a byte changes.
 */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FILL 0x5a
#define LEN  8
#define ALL                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

enum use { WRITE, READ, ATOMIC, INVALIDATE, USES };

static const unsigned right[USES] = {[WRITE] = IBV_ACCESS_REMOTE_WRITE,
                                     [READ] = IBV_ACCESS_REMOTE_READ,
                                     [ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC};

struct target {
    uint32_t key;
    uint64_t to;
    struct ibv_mr *mr; /* to be deregistered */
    struct ibv_pd *pd; /* and freed */
};

static struct target in_middle(struct peer *p)
{
    return (struct target){p->victim.mr->rkey, (uintptr_t)p->victim.buf + 64, NULL, NULL};
}

static struct target guessed(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    t.key ^= 0x100;
    return t;
}

static struct target next_consumer_key(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    t.key ^= 1;
    return t;
}

static struct target zero(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    t.key = 0;
    return t;
}

static struct target of_another_domain(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    t.pd = ibv_alloc_pd(p->victim.id->verbs);
    t.mr = ibv_reg_mr(t.pd, p->victim.buf, SIDE_BYTES, ALL);
    t.key = t.mr->rkey;
    return t;
}

static struct target without_the_right(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    unsigned access = use == INVALIDATE ? ALL : ALL & ~right[use]; /* none is enough */
    t.mr = ibv_reg_mr(p->victim.pd, p->victim.buf, SIDE_BYTES, (int)access);
    t.key = t.mr->rkey;
    return t;
}

static struct target deregistered(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    struct ibv_mr *mr = ibv_reg_mr(p->victim.pd, p->victim.buf, SIDE_BYTES, ALL);
    t.key = mr->rkey;
    assert_int_equal(ibv_dereg_mr(mr), 0);
    return t;
}

static struct target invalidated(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    t.mr = ibv_reg_mr(p->victim.pd, p->victim.buf, SIDE_BYTES, ALL);
    t.key = t.mr->rkey;
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_LOCAL_INV,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .invalidate_rkey = t.key};
    assert_int_equal(ibv_post_send(p->victim.id->qp, &wr, &bad), 0);
    assert_int_equal(side_poll(&p->victim).status, IBV_WC_SUCCESS);
    return t;
}

static struct target one_before(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    t.to = (uintptr_t)p->victim.buf - (use == ATOMIC ? LEN : 1);
    return t;
}

static struct target one_past(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    t.to = (uintptr_t)p->victim.buf + SIDE_BYTES - LEN + (use == ATOMIC ? LEN : 1);
    return t;
}

static struct target around_the_end(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    t.to = UINT64_MAX - LEN + 2;
    return t;
}

static struct target unaligned(struct peer *p, enum use use)
{
    struct target t = in_middle(p);
    (void)use;
    t.to += 4;
    return t;
}

/* 0: does not apply */
static const struct row {
    const char *name;
    struct target (*make)(struct peer *p, enum use use);
    unsigned terminate[USES];
    const char *why;
} rows[] = {
    {"guessed",
     guessed,
     {PEER_TERM(1, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 2, 0x09)},
     "no such key"},
    {"next consumer key",
     next_consumer_key,
     {PEER_TERM(1, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 2, 0x09)},
     "no such key"},
    {"0",
     zero,
     {PEER_TERM(1, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 2, 0x09)},
     "no such key"},
    {"of another domain",
     of_another_domain,
     {PEER_TERM(1, 1, 0x02), PEER_TERM(0, 1, 0x03), PEER_TERM(0, 1, 0x03), PEER_TERM(0, 1, 0x09)},
     "the key is of another protection domain"},
    {"without the right",
     without_the_right,
     {PEER_TERM(1, 1, 0x00), PEER_TERM(0, 1, 0x02), PEER_TERM(0, 1, 0x02), PEER_TERM(0, 2, 0x09)},
     "registered *"},
    {"deregistered",
     deregistered,
     {PEER_TERM(1, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 2, 0x09)},
     "no such key any more: it was deregistered lately"},
    {"invalidated",
     invalidated,
     {PEER_TERM(1, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 1, 0x00), PEER_TERM(0, 2, 0x09)},
     "invalidated, was *"},
    {"before",
     one_before,
     {PEER_TERM(1, 1, 0x01), PEER_TERM(0, 1, 0x01), PEER_TERM(0, 1, 0x01), 0},
     "registered *"},
    {"past",
     one_past,
     {PEER_TERM(1, 1, 0x01), PEER_TERM(0, 1, 0x01), PEER_TERM(0, 1, 0x01), 0},
     "registered *"},
    {"around the end",
     around_the_end,
     {PEER_TERM(1, 1, 0x03), PEER_TERM(0, 1, 0x04), PEER_TERM(0, 1, 0x04), 0},
     "*"},
    {"unaligned", unaligned, {0, 0, PEER_TERM(0, 2, 0x07), 0}, "registered *"},
};

static struct peer_seg access_with(struct peer *p, enum use use, const struct target *t,
                                   uint8_t *hdr)
{
    struct peer_seg s;
    switch (use) {
    case WRITE:
        memset(hdr, 0xee, LEN);
        return peer_tagged(PEER_WRITE, t->key, t->to, hdr, LEN);
    case READ:
        peer_read_request(hdr, 1, 0, LEN, t->key, t->to);
        return peer_untagged(p, PEER_READ_REQUEST, hdr, 28);
    case ATOMIC:
        peer_atomic_request(hdr, 0, 1, t->key, t->to);
        return peer_untagged(p, PEER_ATOMIC_REQUEST, hdr, 52);
    default:
        s = peer_untagged(p, PEER_SEND_INV, NULL, 0);
        s.inval = t->key;
        return s;
    }
}

static void run(const struct row *r, enum use use)
{
    static const char *const names[USES] = {
        [WRITE] = "*tagged*: RDMA Write of 8 bytes at *, key 0x*: %s",
        [READ] = "*: RDMA Read of 8 bytes at *, key 0x*: %s",
        [ATOMIC] = "*: atomic of 8 bytes at *, key 0x*: %s",
        [INVALIDATE] = "receive, wr_id 0x33: STag * be invalidated: *, key 0x*",
    };
    static struct peer p;
    uint8_t hdr[52];
    char line[160];
    peer_open(&p, &(struct peer_conf){.no_crc = false});
    memset(p.victim.buf, FILL, SIDE_BYTES);
    struct target t = r->make(&p, use);
    side_recv(&p.victim, 51, 0, LEN);
    struct peer_seg s = access_with(&p, use, &t, hdr);
    peer_send_seg(&p, &s);
    unsigned got = peer_terminate(&p);
    if (got != r->terminate[use])
        fail_msg("use %d: Terminate 0x%04x", use, got);
    assert_int_equal(p.quoted, (int)p.nsent - 1);
    if (use == INVALIDATE)
        assert_int_equal(side_poll(&p.victim).status, IBV_WC_REM_INV_REQ_ERR);
    snprintf(line, sizeof(line), names[use], r->why);
    witness_end(&p, use != INVALIDATE, line);
    witness_untouched(&p, FILL);
    if (t.mr)
        assert_int_equal(ibv_dereg_mr(t.mr), 0);
    if (t.pd)
        assert_int_equal(ibv_dealloc_pd(t.pd), 0);
    peer_close(&p);
}

static void each_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("  %s\n", rows[i].name);
        for (enum use use = 0; use < USES; use++)
            if (rows[i].terminate[use])
                run(&rows[i], use);
    }
}

/** Of no bytes: keys mean nothing then, and no harm is done (RFC 5041 section 7.1). */
static void nothing_is_always_allowed(void **state)
{
    static struct peer p;
    uint8_t hdr[28];
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = false});
    memset(p.victim.buf, FILL, SIDE_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct target t = rows[i].make(&p, WRITE);
        struct peer_seg s = peer_tagged(PEER_WRITE, t.key, t.to, NULL, 0), answer;
        peer_send_seg(&p, &s);
        peer_read_request(hdr, 7, 9, 0, t.key, t.to);
        s = peer_untagged(&p, PEER_READ_REQUEST, hdr, sizeof(hdr));
        peer_send_seg(&p, &s);
        assert_true(peer_next(&p, &answer));
        assert_int_equal(answer.rdmap, PEER_RDMAP_V1 | PEER_READ_RESPONSE);
        assert_true(answer.stag == 7 && answer.to == 9 && answer.len == 0);
        if (t.mr)
            assert_int_equal(ibv_dereg_mr(t.mr), 0);
        if (t.pd)
            assert_int_equal(ibv_dealloc_pd(t.pd), 0);
    }
    witness_untouched(&p, FILL);
    witness_goes_on();
    peer_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_refused),
        cmocka_unit_test(nothing_is_always_allowed),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}

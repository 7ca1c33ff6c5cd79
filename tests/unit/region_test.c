/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/quiesce.h"
#include "mem/region.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RW   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define ALL  (RW | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define BASE 0x10000

static uint8_t memory[0x100];
static struct iw_pd *pd, *other;
static struct iw_accessor own, foreign; /* whose stream asks */

static int setup(void **state)
{
    (void)state;
    pd = iw_pd_alloc(NULL);
    other = iw_pd_alloc(NULL);
    own.pd = own.recv_pd = pd;
    foreign.pd = foreign.recv_pd = other;
    return pd && other ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(iw_pd_dealloc(pd), 0);
    assert_int_equal(iw_pd_dealloc(other), 0);
    return 0;
}

static void publish(struct iw_region *r, uint64_t base, uint64_t len, unsigned access)
{
    *r = (struct iw_region){.pd = pd,
                            .grant = {.addr = memory, .base = base, .len = len, .access = access}};
    assert_int_equal(iw_region_publish(r), 0);
}

/* ---- the check ---- */

/** As progress does: in a section. */
static enum iw_err check(uint32_t stag, const struct iw_accessor *by, enum iw_use use, uint64_t to,
                         uint64_t len, uint8_t **ptr)
{
    iw_copy_begin(iw_region_pd(by, use));
    enum iw_err err = iw_region_check(stag, by, use, to, len, ptr);
    iw_copy_end();
    return err;
}

static void explain_to(char *text, size_t size, uint32_t stag, const struct iw_accessor *by,
                       enum iw_use use, uint64_t to, uint64_t len)
{
    iw_copy_begin(iw_region_pd(by, use));
    iw_region_explain(text, size, stag, by, use, to, len);
    iw_copy_end();
}

#define USES 6

enum fault { NONE, UNKNOWN, DEAD, FOREIGN, RIGHTS, WRAP, BELOW, ABOVE, LONG };

static const enum iw_err names[USES][LONG + 1] = {
    [IW_USE_GATHER] = {[UNKNOWN] = IW_ERR_LOCAL_PROT,
                       [DEAD] = IW_ERR_LOCAL_PROT,
                       [FOREIGN] = IW_ERR_LOCAL_PROT,
                       [WRAP] = IW_ERR_LOCAL_PROT,
                       [BELOW] = IW_ERR_LOCAL_PROT,
                       [ABOVE] = IW_ERR_LOCAL_PROT,
                       [LONG] = IW_ERR_LOCAL_PROT},
    [IW_USE_SCATTER] = {[UNKNOWN] = IW_ERR_LOCAL_SINK,
                        [DEAD] = IW_ERR_LOCAL_SINK,
                        [FOREIGN] = IW_ERR_LOCAL_SINK,
                        [RIGHTS] = IW_ERR_LOCAL_SINK,
                        [WRAP] = IW_ERR_LOCAL_SINK,
                        [BELOW] = IW_ERR_LOCAL_SINK,
                        [ABOVE] = IW_ERR_LOCAL_SINK,
                        [LONG] = IW_ERR_LOCAL_SINK},
    [IW_USE_RECEIVE] = {[UNKNOWN] = IW_ERR_LOCAL_SINK,
                        [DEAD] = IW_ERR_LOCAL_SINK,
                        [FOREIGN] = IW_ERR_LOCAL_SINK,
                        [RIGHTS] = IW_ERR_LOCAL_SINK,
                        [WRAP] = IW_ERR_LOCAL_SINK,
                        [BELOW] = IW_ERR_LOCAL_SINK,
                        [ABOVE] = IW_ERR_LOCAL_SINK,
                        [LONG] = IW_ERR_LOCAL_SINK},
    [IW_USE_WRITE] = {[UNKNOWN] = IW_ERR_TAGGED_STAG,
                      [DEAD] = IW_ERR_TAGGED_STAG,
                      [FOREIGN] = IW_ERR_TAGGED_STREAM,
                      [RIGHTS] = IW_ERR_TAGGED_ACCESS,
                      [WRAP] = IW_ERR_TAGGED_WRAP,
                      [BELOW] = IW_ERR_TAGGED_BOUNDS,
                      [ABOVE] = IW_ERR_TAGGED_BOUNDS,
                      [LONG] = IW_ERR_TAGGED_BOUNDS},
    [IW_USE_READ] = {[UNKNOWN] = IW_ERR_READ_STAG,
                     [DEAD] = IW_ERR_READ_STAG,
                     [FOREIGN] = IW_ERR_READ_STREAM,
                     [RIGHTS] = IW_ERR_READ_ACCESS,
                     [WRAP] = IW_ERR_READ_WRAP,
                     [BELOW] = IW_ERR_READ_BOUNDS,
                     [ABOVE] = IW_ERR_READ_BOUNDS,
                     [LONG] = IW_ERR_READ_BOUNDS},
    [IW_USE_ATOMIC] = {[UNKNOWN] = IW_ERR_READ_STAG,
                       [DEAD] = IW_ERR_READ_STAG,
                       [FOREIGN] = IW_ERR_READ_STREAM,
                       [RIGHTS] = IW_ERR_READ_ACCESS,
                       [WRAP] = IW_ERR_READ_WRAP,
                       [BELOW] = IW_ERR_READ_BOUNDS,
                       [ABOVE] = IW_ERR_READ_BOUNDS,
                       [LONG] = IW_ERR_READ_BOUNDS},
};

static const unsigned right[USES] = {
    [IW_USE_SCATTER] = IBV_ACCESS_LOCAL_WRITE,  [IW_USE_RECEIVE] = IBV_ACCESS_LOCAL_WRITE,
    [IW_USE_WRITE] = IBV_ACCESS_REMOTE_WRITE,   [IW_USE_READ] = IBV_ACCESS_REMOTE_READ,
    [IW_USE_ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC,
};

/** An access with two faults, that of the earlier check first. */
static enum iw_err check_with(enum iw_use use, enum fault first, enum fault second)
{
    struct iw_region r;
    uint64_t to = BASE, len = sizeof(memory);
    uint8_t *ptr = memory + 1;
    const struct iw_accessor *asking = &own;
    enum fault has[] = {first, second};
    bool rights = first == RIGHTS || second == RIGHTS;
    publish(&r, BASE, sizeof(memory), rights ? ALL & ~right[use] : right[use]);
    uint32_t stag = r.grant.stag;
    for (int i = 0; i < 2; i++)
        switch (has[i]) {
        case UNKNOWN:
            stag = r.grant.stag ^ 1;
            break;
        case DEAD:
            atomic_store(&r.windows, IW_REGION_DEAD);
            break;
        case FOREIGN:
            asking = &foreign;
            break;
        case WRAP:
            to = UINT64_MAX - len + 2;
            break;
        case BELOW:
            to = BASE - 1;
            break;
        case ABOVE:
            to = BASE + sizeof(memory);
            len = 1;
            break;
        case LONG:
            len = sizeof(memory) + 1;
            break;
        case NONE:
        case RIGHTS:
            break;
        }
    enum iw_err err = check(stag, asking, use, to, len, &ptr);
    assert_ptr_equal(ptr, err ? NULL : memory);
    assert_int_equal(check(stag, asking, use, to, 0, &ptr), IW_OK);
    assert_null(ptr);
    iw_region_revoke(&r);
    return err;
}

/** Each fault with every one of a later check beside it: the first gives the name. */
static void faults(void **state)
{
    (void)state;
    for (enum iw_use use = 0; use < USES; use++) {
        assert_int_equal(check_with(use, NONE, NONE), IW_OK);
        for (enum fault first = UNKNOWN; first <= LONG; first++)
            for (enum fault second = first; second <= (first < WRAP ? LONG : first); second++) {
                enum iw_err expect = names[use][first];
                if (first == RIGHTS && !right[use])
                    continue;
                /* Whether a foreign region is dead cannot be looked up. */
                if (first == DEAD && second == FOREIGN)
                    expect = names[use][FOREIGN];
                enum iw_err err = check_with(use, first, second);
                if (err != expect)
                    fail_msg("use %d, faults %d and %d: %s", use, first, second,
                             err ? "another name" : "no error");
            }
    }
}

static void a_shared_receive_queue_has_its_own_domain(void **state)
{
    struct iw_accessor by = {.pd = pd, .recv_pd = other};
    struct iw_region r;
    uint8_t *ptr;
    (void)state;
    publish(&r, BASE, 16, ALL);
    uint32_t stag = r.grant.stag;
    assert_int_equal(check(stag, &by, IW_USE_RECEIVE, BASE, 1, &ptr), IW_ERR_LOCAL_SINK);
    assert_int_equal(check(stag, &by, IW_USE_SCATTER, BASE, 1, &ptr), IW_OK);
    by = (struct iw_accessor){.pd = other, .recv_pd = pd};
    assert_int_equal(check(stag, &by, IW_USE_RECEIVE, BASE, 1, &ptr), IW_OK);
    assert_int_equal(check(stag, &by, IW_USE_SCATTER, BASE, 1, &ptr), IW_ERR_LOCAL_SINK);
    iw_region_revoke(&r);
}

static void bounds(void **state)
{
    static const struct {
        uint64_t base, size, to, len;
        int64_t offset; /* -1: refused */
    } rows[] = {
        {BASE, 16, BASE, 16, 0},
        {BASE, 16, BASE + 15, 1, 15},
        {BASE, 16, BASE + 16, 1, -1},
        {BASE, 16, BASE + 8, 9, -1},
        {BASE, 16, 0, 1, -1},
        {BASE, 16, BASE, UINT64_MAX, -1},
        {0, 16, 0, 16, 0},
        {0, 16, 3, 4, 3},
        {0, 16, UINT64_MAX, 1, -1},
        {UINT64_MAX - 15, 16, UINT64_MAX - 15, 16, 0},
        {UINT64_MAX - 15, 16, UINT64_MAX, 1, 15},
        {UINT64_MAX - 15, 16, UINT64_MAX, 2, -1},
        {UINT64_MAX - 15, 16, UINT64_MAX - 15, 17, -1},
        {UINT64_MAX - 15, 16, 0, 1, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct iw_region r;
        uint8_t *ptr;
        publish(&r, rows[i].base, rows[i].size, ALL);
        enum iw_err err = check(r.grant.stag, &own, IW_USE_READ, rows[i].to, rows[i].len, &ptr);
        if (rows[i].offset < 0 ? !err || ptr : err || ptr != memory + rows[i].offset)
            fail_msg("row %zu", i);
        iw_region_revoke(&r);
    }
}

/* ---- explanation ---- */

static void explain(void **state)
{
    static const struct {
        unsigned access;
        bool dead;
        const struct iw_accessor *asking;
        uint32_t flip;
        const char *text;
    } rows[] = {
        {RW, false, &own, 0, "registered 0x10000 to 0x100ff, local write, remote write"},
        {0, false, &own, 0, "registered 0x10000 to 0x100ff, no rights"},
        {IBV_ACCESS_REMOTE_READ, true, &own, 0, "invalidated, was 0x10000 to 0x100ff, remote read"},
        {RW, false, &foreign, 0, "the key is of another protection domain"},
        {RW, false, &own, 1, "no such key"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct iw_region r;
        char text[224], expect[224];
        publish(&r, BASE, sizeof(memory), rows[i].access);
        if (rows[i].dead)
            assert_true(iw_region_close(&r));
        uint32_t stag = r.grant.stag ^ rows[i].flip;
        explain_to(text, sizeof(text), stag, rows[i].asking, IW_USE_READ, 0xfff0, 300);
        snprintf(expect, sizeof(expect), "RDMA Read of 300 bytes at 0xfff0, key 0x%08x: %s", stag,
                 rows[i].text);
        assert_string_equal(text, expect);
        explain_to(text, 20, stag, rows[i].asking, IW_USE_READ, 0xfff0, 300);
        assert_int_equal(strlen(text), 19);
        iw_region_revoke(&r);
    }
}

static void the_longest_explanation_fits(void **state)
{
    struct iw_region r;
    char text[256];
    (void)state;
    publish(&r, UINT64_MAX - 15, 16, ALL);
    atomic_store(&r.windows, IW_REGION_DEAD);
    explain_to(text, sizeof(text), r.grant.stag, &own, IW_USE_GATHER, UINT64_MAX, UINT64_MAX);
    assert_string_equal(text + strlen(text) - strlen("remote atomic"), "remote atomic");
    iw_region_revoke(&r);
}

/* ---- invalidate ---- */

static void invalidate(void **state)
{
    struct iw_region r;
    uint8_t *ptr;
    (void)state;
    publish(&r, BASE, 16, RW);
    assert_int_equal(iw_region_invalidate(&own, r.grant.stag ^ 1), IW_ERR_INVALIDATE);
    assert_int_equal(iw_region_invalidate(&own, 0), IW_ERR_INVALIDATE);
    assert_int_equal(iw_region_invalidate(&foreign, r.grant.stag), IW_ERR_INVALIDATE_STREAM);
    assert_int_equal(check(r.grant.stag, &own, IW_USE_WRITE, BASE, 1, &ptr), IW_OK);
    assert_int_equal(iw_region_invalidate(&own, r.grant.stag), IW_OK);
    assert_int_equal(check(r.grant.stag, &own, IW_USE_WRITE, BASE, 1, &ptr), IW_ERR_TAGGED_STAG);
    assert_int_equal(iw_region_invalidate(&own, r.grant.stag), IW_ERR_INVALIDATE);
    iw_region_revoke(&r);

    publish(&r, BASE, 16, IBV_ACCESS_LOCAL_WRITE);
    assert_true(iw_region_pin(&r)); /* a window is bound */
    assert_int_equal(iw_region_invalidate(&own, r.grant.stag), IW_ERR_INVALIDATE);
    iw_region_unpin(&r);
    assert_int_equal(iw_region_invalidate(&own, r.grant.stag), IW_OK);
    assert_false(iw_region_pin(&r));
    iw_region_revoke(&r);
}

/** Memory is for all peers that were told of it: none of them takes it away. */
static void a_peer_invalidates_no_memory(void **state)
{
    static const unsigned rights[] = {IBV_ACCESS_LOCAL_WRITE, RW, ALL, ALL | IBV_ACCESS_MW_BIND};
    struct iw_region r;
    uint8_t *ptr;
    (void)state;
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        publish(&r, BASE, 16, rights[i]);
        assert_int_equal(iw_region_invalidate_by_peer(&own, r.grant.stag), IW_ERR_INVALIDATE);
        assert_int_equal(iw_region_invalidate_by_peer(&own, r.grant.stag ^ 1), IW_ERR_INVALIDATE);
        assert_int_equal(iw_region_invalidate_by_peer(&foreign, r.grant.stag),
                         IW_ERR_INVALIDATE_STREAM);
        assert_int_equal(check(r.grant.stag, &own, IW_USE_SCATTER, BASE, 1, &ptr), IW_OK);
        iw_region_revoke(&r);
    }
}

/* ---- revoking against copies that run ---- */

#define COPIERS 2

struct copier {
    struct iw_accessor by;
    uint64_t to; /* each has its own half of the region */
    pthread_t thread;
};

static _Atomic uint32_t stag_now;
static atomic_bool stop;
static atomic_uint copies;

static void *copy_thread(void *arg)
{
    struct copier *c = arg;
    uint8_t byte = 1, *ptr;
    while (!atomic_load(&stop)) {
        iw_copy_begin(c->by.pd);
        uint32_t stag = atomic_load(&stag_now);
        if (iw_region_check(stag, &c->by, IW_USE_WRITE, c->to, 64, &ptr) == IW_OK) {
            for (int i = 0; i < 64; i++)
                ptr[i] = byte++;
            atomic_fetch_add(&copies, 1);
        }
        iw_copy_end();
    }
    return NULL;
}

static void copier_start(struct copier *c, struct iw_pd *in, int i)
{
    *c = (struct copier){.by.pd = in, .to = BASE + 64 * (i % 2)};
    assert_int_equal(pthread_create(&c->thread, NULL, copy_thread, c), 0);
}

/** Memory and region go the moment revoke returns; a third QP is of another domain. */
static void revoke_waits(void **state)
{
    struct copier c[COPIERS + 1];
    (void)state;
    atomic_store(&stop, false);
    atomic_store(&copies, 0);
    for (int i = 0; i <= COPIERS; i++)
        copier_start(&c[i], i < COPIERS ? pd : other, i);
    for (int i = 0; i < 300; i++) {
        struct iw_region *r = malloc(sizeof(*r));
        uint8_t *bytes = malloc(128);
        *r = (struct iw_region){.pd = pd,
                                .grant = {.addr = bytes, .base = BASE, .len = 128, .access = RW}};
        assert_int_equal(iw_region_publish(r), 0);
        unsigned before = atomic_load(&copies);
        atomic_store(&stag_now, r->grant.stag);
        while (atomic_load(&copies) == before)
            sched_yield();
        iw_region_revoke(r);
        free(bytes);
        free(r);
    }
    atomic_store(&stop, true);
    for (int i = 0; i <= COPIERS; i++)
        assert_int_equal(pthread_join(c[i].thread, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(faults),
        TEST(a_shared_receive_queue_has_its_own_domain),
        TEST(bounds),
        TEST(explain),
        TEST(the_longest_explanation_fits),
        TEST(invalidate),
        TEST(a_peer_invalidates_no_memory),
        TEST(revoke_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

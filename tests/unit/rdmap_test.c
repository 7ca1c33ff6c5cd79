/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/rdmap.h"

#include "wire/ddp.h"

#include "vectors.h"
#include "wire/opcode.h"

static void opcode_table(void **state)
{
    static const struct {
        bool known, tagged;
        uint8_t qn, hdr_len;
        bool single, exact, solicited, invalidate, extension;
    } want[RDMAP_OPCODES] = {
        [0x0] = {true, true, 0, 0, false, false, false, false, false},
        [0x1] = {true, false, 1, 28, true, true, false, false, false},
        [0x2] = {true, true, 0, 0, false, false, false, false, false},
        [0x3] = {true, false, 0, 0, false, false, false, false, false},
        [0x4] = {true, false, 0, 0, false, false, false, true, false},
        [0x5] = {true, false, 0, 0, false, false, true, false, false},
        [0x6] = {true, false, 0, 0, false, false, true, true, false},
        [0x7] = {true, false, 2, 4, true, false, false, false, false},
        [0x8] = {true, false, 0, 8, true, true, false, false, false},
        [0x9] = {true, false, 0, 8, true, true, true, false, false},
        [0xa] = {true, false, 1, 52, true, true, false, false, false},
        [0xb] = {true, false, 3, 12, true, true, false, false, false},
        [0xc] = {true, false, 3, 4, true, true, false, false, true},
        [0xf] = {true, false, 0, 8, false, false, false, false, true},
    };

    (void)state;
    for (int i = 0; i < RDMAP_OPCODES; i++) {
        const struct rdmap_op *op = &rdmap_ops[i];
        assert_int_equal(op->name != NULL, want[i].known);
        const char *name = op->name ? op->name : "not assigned";
        check(name, op->tagged == want[i].tagged && op->qn == want[i].qn);
        check(name, op->hdr_len == want[i].hdr_len);
        check(name, op->single == want[i].single && op->exact == want[i].exact);
        check(name, op->solicited == want[i].solicited && op->invalidate == want[i].invalidate);
        check(name, op->extension == want[i].extension);
    }
}

static void read_requests(void **state)
{
    static const struct {
        const char *name;
        const uint8_t *bytes;
        struct rdmap_read_request r;
    } rows[] = {
        {"V8", UNTAGGED_PAYLOAD(V8), {.sink_stag = 1, .source_stag = 1}},
        {"V13",
         UNTAGGED_PAYLOAD(V13),
         {.sink_stag = 0x5511aa01,
          .sink_to = 0x10000,
          .size = 4096,
          .source_stag = 0xa1b2,
          .source_to = 0x7f0000001000}},
        {"in V17",
         V17 + 2 + 18 + 4 + 2 + 18,
         {.sink_stag = 0x5511aa01,
          .sink_to = 0x10000,
          .size = 4096,
          .source_stag = 0xbad0,
          .source_to = 0x9000}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rdmap_read_request r;
        uint8_t out[RDMAP_READ_REQUEST_HDR + 1] = {[RDMAP_READ_REQUEST_HDR] = 0xee};
        uint8_t *p = exact(rows[i].bytes, RDMAP_READ_REQUEST_HDR);
        rdmap_read_request_decode(p, &r);
        check(rows[i].name, r.sink_stag == rows[i].r.sink_stag && r.sink_to == rows[i].r.sink_to);
        check(rows[i].name, r.size == rows[i].r.size);
        check(rows[i].name,
              r.source_stag == rows[i].r.source_stag && r.source_to == rows[i].r.source_to);
        rdmap_read_request_encode(out, &rows[i].r);
        check(rows[i].name, memcmp(out, p, RDMAP_READ_REQUEST_HDR) == 0);
        check(rows[i].name, out[RDMAP_READ_REQUEST_HDR] == 0xee);
        free(p);
    }
}

static void atomic_requests(void **state)
{
    static const struct {
        const char *name;
        const uint8_t *bytes;
        struct rdmap_atomic_request r;
    } rows[] = {
        {"V20",
         UNTAGGED_PAYLOAD(V20),
         {.aop = RDMAP_AOP_FETCH_ADD,
          .id = 7,
          .stag = 0xa1b2,
          .to = 0x7f0000001000,
          .data = 1,
          .compare_mask = UINT64_MAX}},
        {"V21",
         UNTAGGED_PAYLOAD(V21),
         {.aop = RDMAP_AOP_CMP_SWAP,
          .id = 8,
          .stag = 0xa1b2,
          .to = 0x7f0000001000,
          .data = 2,
          .data_mask = UINT64_MAX,
          .compare = 1,
          .compare_mask = UINT64_MAX}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct rdmap_atomic_request *want = &rows[i].r;
        struct rdmap_atomic_request r;
        uint8_t out[RDMAP_ATOMIC_REQUEST_HDR + 1] = {[RDMAP_ATOMIC_REQUEST_HDR] = 0xee};
        uint8_t *p = exact(rows[i].bytes, RDMAP_ATOMIC_REQUEST_HDR);
        rdmap_atomic_request_decode(p, &r);
        check(rows[i].name, r.aop == want->aop && r.id == want->id);
        check(rows[i].name, r.stag == want->stag && r.to == want->to);
        check(rows[i].name, r.data == want->data && r.data_mask == want->data_mask);
        check(rows[i].name, r.compare == want->compare && r.compare_mask == want->compare_mask);
        rdmap_atomic_request_encode(out, want);
        check(rows[i].name, memcmp(out, p, RDMAP_ATOMIC_REQUEST_HDR) == 0);
        check(rows[i].name, out[RDMAP_ATOMIC_REQUEST_HDR] == 0xee);
        free(p);
    }
}

/** Every field has a place of its own: no two vectors with equal fields could hide a swap. */
static void distinct_atomic_fields(void **state)
{
    const struct rdmap_atomic_request in = {.aop = 2,
                                            .id = 0x01020304,
                                            .stag = 0x05060708,
                                            .to = 0x1112131415161718,
                                            .data = 0x2122232425262728,
                                            .data_mask = 0x3132333435363738,
                                            .compare = 0x4142434445464748,
                                            .compare_mask = 0x5152535455565758};
    static const uint8_t want[RDMAP_ATOMIC_REQUEST_HDR] = {
        0x00, 0x00, 0x00, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x11,
        0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
        0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42, 0x43,
        0x44, 0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
    };
    uint8_t out[RDMAP_ATOMIC_REQUEST_HDR];
    struct rdmap_atomic_request r;

    (void)state;
    rdmap_atomic_request_encode(out, &in);
    assert_memory_equal(out, want, sizeof(want));
    rdmap_atomic_request_decode(want, &r);
    assert_true(r.aop == in.aop && r.id == in.id && r.stag == in.stag && r.to == in.to);
    assert_true(r.data == in.data && r.data_mask == in.data_mask);
    assert_true(r.compare == in.compare && r.compare_mask == in.compare_mask);
}

/** The 28 bits above the atomic operation are reserved. */
static void reserved_bits_of_an_atomic(void **state)
{
    uint8_t p[RDMAP_ATOMIC_REQUEST_HDR];
    struct rdmap_atomic_request r;

    (void)state;
    memcpy(p, UNTAGGED_PAYLOAD(V21), sizeof(p));
    memcpy(p, "\xff\xff\xff\xf2", 4);
    rdmap_atomic_request_decode(p, &r);
    assert_int_equal(r.aop, RDMAP_AOP_CMP_SWAP);
    p[3] = 0x0f;
    rdmap_atomic_request_decode(p, &r);
    assert_int_equal(r.aop, 0xf);
}

static void atomic_response(void **state)
{
    struct rdmap_atomic_response r;
    uint8_t out[RDMAP_ATOMIC_RESPONSE_HDR + 1] = {[RDMAP_ATOMIC_RESPONSE_HDR] = 0xee};
    uint8_t *p = exact(UNTAGGED_PAYLOAD(V22), RDMAP_ATOMIC_RESPONSE_HDR);

    (void)state;
    rdmap_atomic_response_decode(p, &r);
    assert_int_equal(r.id, 7);
    assert_int_equal(r.original, 0x29);
    rdmap_atomic_response_encode(out, &r);
    assert_memory_equal(out, p, RDMAP_ATOMIC_RESPONSE_HDR);
    assert_int_equal(out[RDMAP_ATOMIC_RESPONSE_HDR], 0xee);
    free(p);
    r.original = 0x8102030405060708;
    rdmap_atomic_response_encode(out, &r);
    assert_memory_equal(out + 4, "\x81\2\3\4\5\6\7\x08", 8);
}

static void atomics(void **state)
{
    static const struct {
        const char *name;
        uint8_t aop;
        uint64_t original, data, data_mask, compare, compare_mask, result;
    } rows[] = {
        {"add", 0, 0x29, 1, 0, 0, 0, 0x2a},
        {"add wraps", 0, UINT64_MAX, 2, 0, 0, 0, 1},
        {"add carries through", 0, 0xffffffff, 1, 0, 0, 0, 0x100000000},
        {"carry dropped between halves", 0, 0xffffffff, 1, 0x80000000, 0, 0, 0},
        {"carry kept below the top bit", 0, 0x7fffffff, 1, 0x80000000, 0, 0, 0x80000000},
        {"two fields", 0, 0x00000001ffffffff, 0x0000000200000001, 0x8000000080000000, 0, 0,
         0x0000000300000000},
        {"bit by bit is exclusive or", 0, 0xff00ff00ff00ff00, 0xffff0000ffff0000, UINT64_MAX, 0, 0,
         0x00ffff0000ffff00},
        {"compare is ignored by add", 0, 1, 1, 0, 99, UINT64_MAX, 2},
        {"swap", 2, 1, 2, UINT64_MAX, 1, UINT64_MAX, 2},
        {"no swap", 2, 3, 2, UINT64_MAX, 1, UINT64_MAX, 3},
        {"compare under a mask", 2, 0xab01, 2, UINT64_MAX, 1, 0xff, 2},
        {"no swap under a mask", 2, 0xab01, 2, UINT64_MAX, 0xaa01, 0xffff, 0xab01},
        {"swap under a mask", 2, 0x1111111111111111, UINT64_MAX, 0xff00, 0, 0, 0x111111111111ff11},
        {"mask 0 compares equal", 2, 5, 6, UINT64_MAX, 7, 0, 6},
        {"not assigned", 1, 5, 6, UINT64_MAX, 5, UINT64_MAX, 5},
        {"not assigned", 15, 5, 6, UINT64_MAX, 5, UINT64_MAX, 5},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rdmap_atomic_request r = {.aop = rows[i].aop,
                                         .data = rows[i].data,
                                         .data_mask = rows[i].data_mask,
                                         .compare = rows[i].compare,
                                         .compare_mask = rows[i].compare_mask};
        check(rows[i].name, rdmap_atomic_apply(&r, rows[i].original) == rows[i].result);
    }
}

/** One bit at a time with a carry that ends at a bit of the mask (RFC 7306 section 5.1.1). */
static uint64_t add_by_bits(uint64_t a, uint64_t b, uint64_t mask)
{
    uint64_t sum = 0;
    unsigned carry = 0;

    for (int i = 0; i < 64; i++) {
        unsigned s = (a >> i & 1) + (b >> i & 1) + carry;
        sum |= (uint64_t)(s & 1) << i;
        carry = s >> 1 & !(mask >> i & 1);
    }
    return sum;
}

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

static void masked_adds(void **state)
{
    uint64_t x = 88172645463325252;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        struct rdmap_atomic_request r = {.aop = RDMAP_AOP_FETCH_ADD};
        uint64_t original = next(&x);
        r.data = next(&x);
        r.data_mask = next(&x) & next(&x);
        assert_int_equal(rdmap_atomic_apply(&r, original),
                         add_by_bits(original, r.data, r.data_mask));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcode_table),
        cmocka_unit_test(read_requests),
        cmocka_unit_test(atomic_requests),
        cmocka_unit_test(distinct_atomic_fields),
        cmocka_unit_test(reserved_bits_of_an_atomic),
        cmocka_unit_test(atomic_response),
        cmocka_unit_test(atomics),
        cmocka_unit_test(masked_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

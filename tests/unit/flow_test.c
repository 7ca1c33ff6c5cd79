/* SPDX-License-Identifier: BSD-2-Clause */
/* What each kind of message is counted as. */
#include "conn/flow.h"

#include "vectors.h"
#include "wire/opcode.h"

/** @return whether a segment of 77 bytes counts as one of @p kind, and as nothing else */
static bool counts(unsigned opcode, bool last, enum iwc_kind kind, bool data, bool inv)
{
    struct iwc_flow found = {0}, wanted = {.fpdus = 1, .invalidates = last && inv};
    iwc_flow_segment(&found, opcode, last, 77);
    if (kind < IWC_KINDS && last)
        wanted.messages[kind] = 1;
    if (data)
        wanted.bytes[kind] = 77;
    return !memcmp(&found, &wanted, sizeof(found));
}

static void every_opcode(void **state)
{
    static const struct {
        unsigned opcode;
        enum iwc_kind kind;
        bool data, invalidates;
    } rows[] = {
        {RDMAP_WRITE, IWC_KIND_WRITE, true, false},
        {RDMAP_READ_REQUEST, IWC_KIND_READ, false, false},
        {RDMAP_READ_RESPONSE, IWC_KIND_READ_RESPONSE, true, false},
        {RDMAP_SEND, IWC_KIND_SEND, true, false},
        {RDMAP_SEND_INV, IWC_KIND_SEND, true, true},
        {RDMAP_SEND_SE, IWC_KIND_SEND, true, false},
        {RDMAP_SEND_SE_INV, IWC_KIND_SEND, true, true},
        {RDMAP_TERMINATE, IWC_KINDS, false, false},
        {RDMAP_IMM, IWC_KIND_IMMEDIATE, false, false},
        {RDMAP_IMM_SE, IWC_KIND_IMMEDIATE, false, false},
        {RDMAP_ATOMIC_REQUEST, IWC_KIND_ATOMIC, false, false},
        {RDMAP_ATOMIC_RESPONSE, IWC_KIND_ATOMIC_RESPONSE, false, false},
        {RDMAP_PATH, IWC_KINDS, false, false},
        {RDMAP_SEND_IMM, IWC_KIND_SEND, true, false},
    };
    size_t assigned = 0;
    (void)state;
    for (unsigned opcode = 0; opcode < RDMAP_OPCODES; opcode++)
        assigned += rdmap_ops[opcode].name != NULL;
    assert_int_equal(COUNT(rows), assigned);
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int last = 0; last < 2; last++)
            check(rdmap_ops[rows[i].opcode].name,
                  counts(rows[i].opcode, last, rows[i].kind, rows[i].data, rows[i].invalidates));
}

static void sums(void **state)
{
    struct iwc_flow sum = {0}, other = {0};
    (void)state;
    iwc_flow_segment(&sum, RDMAP_WRITE, false, 1000);
    iwc_flow_segment(&sum, RDMAP_WRITE, true, 24);
    iwc_flow_segment(&other, RDMAP_WRITE, true, 6);
    iwc_flow_segment(&other, RDMAP_SEND_INV, true, 3);
    iwc_flow_segment(&other, RDMAP_IMM, true, 8);
    iwc_flow_add(&sum, &other);
    assert_int_equal(sum.fpdus, 5);
    assert_int_equal(sum.invalidates, 1);
    assert_int_equal(sum.messages[IWC_KIND_WRITE], 2);
    assert_int_equal(sum.messages[IWC_KIND_SEND], 1);
    assert_int_equal(sum.messages[IWC_KIND_IMMEDIATE], 1);
    assert_int_equal(sum.bytes[IWC_KIND_WRITE], 1030);
    assert_int_equal(sum.bytes[IWC_KIND_SEND], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opcode),
        cmocka_unit_test(sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

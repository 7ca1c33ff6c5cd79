/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/terms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t wire[IW_TERMS_BYTES] = {'A', 'W', 'I', 'B', 1, 6, 5, 1, 0, 0x8a, 0x25, 1};

/** The bytes on the wire, which another release must read. */
static void layout(void **state)
{
    const struct iw_terms terms = {.qpn = 0x8a2501, .rnr_retry = 6, .retry_count = 5, .srq = true};
    uint8_t bytes[IW_TERMS_BYTES];
    struct iw_terms t;
    (void)state;
    iw_terms_encode(bytes, &terms);
    assert_memory_equal(bytes, wire, sizeof(wire));
    assert_true(iw_terms_decode(bytes, sizeof(bytes), &t));
    assert_int_equal(t.qpn, terms.qpn);
    assert_int_equal(t.rnr_retry, 6);
    assert_int_equal(t.retry_count, 5);
    assert_true(t.srq);
    assert_true(iw_terms_decode(bytes, sizeof(bytes) + 5, &t)); /* the program's data follow */
}

static void not_some(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {3, 'C'},         /* another protocol's private data */
        {4, 2},           /* a version to come */
        {5, 8},   {6, 8}, /* counts have three bits */
        {7, 2},   {8, 1}, /* numbers have 24 */
    };
    struct iw_terms t;
    (void)state;
    for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        uint8_t bytes[IW_TERMS_BYTES];
        memcpy(bytes, wire, sizeof(bytes));
        bytes[changes[i].at] = changes[i].value;
        if (iw_terms_decode(bytes, sizeof(bytes), &t))
            fail_msg("change %u is not seen", i);
    }
    assert_false(iw_terms_decode(wire, sizeof(wire) - 1, &t));
    assert_false(iw_terms_decode(NULL, 0, &t));
    uint8_t nobodys[IW_TERMS_BYTES] = {'A', 'W', 'I', 'B', 1, [11] = 1};
    assert_false(iw_terms_decode(nobodys, sizeof(nobodys), &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(not_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

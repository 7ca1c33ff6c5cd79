/* SPDX-License-Identifier: BSD-2-Clause */
/* The STag table, with random numbers that the test chooses. */
#include "rnic/random.h"
#include "rnic/stag.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t *numbers; /* NULL: the generator fails */

int iw_random32(uint32_t *out)
{
    if (!numbers)
        return -EIO;
    *out = *numbers++;
    return 0;
}

static struct iw_pd pd, other;

static void insert(struct iw_region *r, struct iw_pd *in, const uint32_t *from)
{
    *r = (struct iw_region){.pd = in};
    numbers = from;
    assert_int_equal(iw_stag_insert(r), 0);
}

static void remove_(struct iw_region *r)
{
    iw_stag_hide(r);
    iw_stag_release(r);
}

static void expect(uint32_t stag, struct iw_pd *in, enum iw_stag_found found, struct iw_region *r)
{
    struct iw_region *got = NULL;
    assert_int_equal(iw_stag_find(stag, in, &got), found);
    if (found == IW_STAG_OWN)
        assert_ptr_equal(got, r);
}

static void never_zero_never_twice(void **state)
{
    struct iw_region a, b;
    (void)state;
    insert(&a, &pd, (uint32_t[]){0, 0, 0xa1b2c3d4});
    assert_int_equal(a.stag, 0xa1b2c3d4);
    insert(&b, &other, (uint32_t[]){0xa1b2c3d4, 0, 0xa1b2c3d4, 0xa1b2c3d5});
    assert_int_equal(b.stag, 0xa1b2c3d5);
    expect(a.stag, &pd, IW_STAG_OWN, &a);
    expect(b.stag, &other, IW_STAG_OWN, &b);
    remove_(&a);
    remove_(&b);
}

static void found_by_its_own_domain_only(void **state)
{
    struct iw_region a;
    (void)state;
    expect(0, &pd, IW_STAG_NONE, NULL);
    expect(7, &pd, IW_STAG_NONE, NULL);
    insert(&a, &pd, (uint32_t[]){7});
    expect(7, &pd, IW_STAG_OWN, &a);
    expect(7, &other, IW_STAG_FOREIGN, NULL);
    expect(6, &pd, IW_STAG_NONE, NULL);
    expect(7 + (1u << 24), &pd, IW_STAG_NONE, NULL); /* the same bucket */
    expect(0, &pd, IW_STAG_NONE, NULL);
    iw_stag_hide(&a);
    expect(7, &pd, IW_STAG_NONE, NULL);
    expect(7, &other, IW_STAG_NONE, NULL);
    expect(0, &pd, IW_STAG_NONE, NULL);
    iw_stag_release(&a);
    expect(7, &pd, IW_STAG_NONE, NULL);
}

static void slots_are_used_again_after_the_grace_period(void **state)
{
    struct iw_region a, b, c;
    (void)state;
    insert(&a, &pd, (uint32_t[]){0x5501});
    struct iw_stag_slot *slot = a.slot;
    iw_stag_hide(&a);
    insert(&b, &pd, (uint32_t[]){0x5502}); /* somebody may still be reading a */
    assert_ptr_not_equal(b.slot, slot);
    iw_stag_release(&a);
    insert(&c, &other, (uint32_t[]){0x5503});
    assert_ptr_equal(c.slot, slot);
    expect(0x5501, &pd, IW_STAG_NONE, NULL);
    expect(0x5502, &pd, IW_STAG_OWN, &b);
    expect(0x5503, &other, IW_STAG_OWN, &c);
    remove_(&b);
    remove_(&c);
}

static void long_chains(void **state)
{
    static struct iw_region r[256];
    (void)state;
    for (uint32_t i = 0; i < 256; i++)
        insert(&r[i], &pd, (uint32_t[]){0x12345600 + i});
    for (uint32_t i = 0; i < 256; i += 2)
        remove_(&r[i]);
    for (uint32_t i = 0; i < 256; i++)
        expect(0x12345600 + i, &pd, i % 2 ? IW_STAG_OWN : IW_STAG_NONE, &r[i]);
    for (uint32_t i = 1; i < 256; i += 2)
        remove_(&r[i]);
}

static void no_random_number_no_stag(void **state)
{
    struct iw_region a = {.pd = &pd};
    (void)state;
    numbers = NULL;
    assert_int_equal(iw_stag_insert(&a), EIO);
    numbers = (uint32_t[]){9};
    assert_int_equal(iw_stag_insert(&a), 0); /* the lock is free */
    remove_(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_zero_never_twice),
        cmocka_unit_test(found_by_its_own_domain_only),
        cmocka_unit_test(slots_are_used_again_after_the_grace_period),
        cmocka_unit_test(long_chains),
        cmocka_unit_test(no_random_number_no_stag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

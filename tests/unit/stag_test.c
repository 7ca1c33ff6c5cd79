/* SPDX-License-Identifier: BSD-2-Clause */
/* The STag table, with random numbers that the test chooses. */
#include "env/random.h"
#include "mem/stag.h"

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
    assert_int_equal(a.grant.stag, 0xa1b2c3d4);
    /* Another key of the index is as bad as the STag itself, and so is index 0. */
    insert(&b, &other, (uint32_t[]){0xa1b2c3d4, 0, 0xa1b2c3d5, 0xff, 0xa1b2c4d4});
    assert_int_equal(b.grant.stag, 0xa1b2c4d4);
    expect(a.grant.stag, &pd, IW_STAG_OWN, &a);
    expect(b.grant.stag, &other, IW_STAG_OWN, &b);
    remove_(&a);
    remove_(&b);
}

static void found_by_its_own_domain_only(void **state)
{
    struct iw_region a;
    (void)state;
    expect(0, &pd, IW_STAG_NONE, NULL);
    expect(0x107, &pd, IW_STAG_NONE, NULL);
    insert(&a, &pd, (uint32_t[]){0x107});
    expect(0x107, &pd, IW_STAG_OWN, &a);
    expect(0x107, &other, IW_STAG_FOREIGN, NULL);
    expect(0x106, &pd, IW_STAG_NONE, NULL);
    expect(0x107 + (1u << 24), &pd, IW_STAG_NONE, NULL); /* the same bucket */
    expect(0, &pd, IW_STAG_NONE, NULL);
    iw_stag_hide(&a);
    expect(0x107, &pd, IW_STAG_NONE, NULL);
    expect(0x107, &other, IW_STAG_NONE, NULL);
    expect(0, &pd, IW_STAG_NONE, NULL);
    iw_stag_release(&a);
    expect(0x107, &pd, IW_STAG_NONE, NULL);
}

static void slots_are_used_again_after_the_grace_period(void **state)
{
    struct iw_region a, b, c;
    (void)state;
    insert(&a, &pd, (uint32_t[]){0x01005501});
    struct iw_stag_slot *slot = a.slot;
    iw_stag_hide(&a);
    insert(&b, &pd, (uint32_t[]){0x02005501}); /* somebody may still be reading a */
    assert_ptr_not_equal(b.slot, slot);
    iw_stag_release(&a);
    insert(&c, &other, (uint32_t[]){0x03005501});
    assert_ptr_equal(c.slot, slot);
    expect(0x01005501, &pd, IW_STAG_NONE, NULL);
    expect(0x02005501, &pd, IW_STAG_OWN, &b);
    expect(0x03005501, &other, IW_STAG_OWN, &c);
    remove_(&b);
    remove_(&c);
}

/** A window: its key changes, its index does not. */
static void another_key(void **state)
{
    struct iw_region a, *r;
    (void)state;
    insert(&a, &pd, (uint32_t[]){0x7701});
    a.grant.stag = 0x7702;
    iw_stag_rename(&a);
    expect(0x7701, &pd, IW_STAG_NONE, NULL);
    expect(0x7702, &pd, IW_STAG_OWN, &a);
    expect(0x7702, &other, IW_STAG_FOREIGN, NULL);
    assert_int_equal(iw_stag_find_any_key(0x7755, &pd, &r), IW_STAG_OWN);
    assert_ptr_equal(r, &a);
    assert_int_equal(iw_stag_find_any_key(0x7755, &other, &r), IW_STAG_FOREIGN);
    assert_int_equal(iw_stag_find_any_key(0x7855, &pd, &r), IW_STAG_NONE);
    assert_int_equal(iw_stag_find_any_key(0x55, &pd, &r), IW_STAG_NONE);
    iw_stag_hide(&a);
    assert_int_equal(iw_stag_find_any_key(0x7702, &pd, &r), IW_STAG_NONE);
    iw_stag_release(&a);
}

static void long_chains(void **state)
{
    static struct iw_region r[256];
    (void)state;
    for (uint32_t i = 0; i < 256; i++)
        insert(&r[i], &pd, (uint32_t[]){0x00345600 + (i << 24)});
    for (uint32_t i = 0; i < 256; i += 2)
        remove_(&r[i]);
    for (uint32_t i = 0; i < 256; i++)
        expect(0x00345600 + (i << 24), &pd, i % 2 ? IW_STAG_OWN : IW_STAG_NONE, &r[i]);
    for (uint32_t i = 1; i < 256; i += 2)
        remove_(&r[i]);
}

static void no_random_number_no_stag(void **state)
{
    struct iw_region a = {.pd = &pd};
    (void)state;
    numbers = NULL;
    assert_int_equal(iw_stag_insert(&a), EIO);
    numbers = (uint32_t[]){0x109};
    assert_int_equal(iw_stag_insert(&a), 0); /* the lock is free */
    remove_(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_zero_never_twice),
        cmocka_unit_test(found_by_its_own_domain_only),
        cmocka_unit_test(slots_are_used_again_after_the_grace_period),
        cmocka_unit_test(another_key),
        cmocka_unit_test(long_chains),
        cmocka_unit_test(no_random_number_no_stag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

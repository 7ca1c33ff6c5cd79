/* SPDX-License-Identifier: BSD-2-Clause */
/* Who uses a protection domain, and what a parent domain counts as. */
#include "mem/pd.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct ibv_context context;

static void busy_while_used(void **state)
{
    struct iw_pd *pd = iw_pd_alloc(&context);
    (void)state;
    assert_ptr_equal(pd->root, pd);
    assert_ptr_equal(pd->pub.context, &context);
    atomic_fetch_add(&pd->users, 1);
    assert_int_equal(iw_pd_dealloc(pd), EBUSY);
    atomic_fetch_sub(&pd->users, 1);
    assert_int_equal(iw_pd_dealloc(pd), 0);
}

static void a_parent_uses_its_root(void **state)
{
    struct iw_td td = {0};
    struct iw_pd *root = iw_pd_alloc(&context), *parent[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        parent[i] = iw_pd_alloc_parent(root, i ? &td : NULL);
        assert_ptr_equal(parent[i]->root, root);
        assert_ptr_equal(parent[i]->pub.context, &context);
    }
    assert_int_equal(td.users, 1);
    assert_int_equal(iw_pd_dealloc(root), EBUSY);
    atomic_fetch_add(&parent[0]->users, 1); /* its own: not the root's */
    assert_int_equal(iw_pd_dealloc(parent[0]), EBUSY);
    assert_int_equal(iw_pd_dealloc(parent[1]), 0);
    assert_int_equal(td.users, 0);
    assert_int_equal(iw_pd_dealloc(root), EBUSY);
    atomic_fetch_sub(&parent[0]->users, 1);
    assert_int_equal(iw_pd_dealloc(parent[0]), 0);
    assert_int_equal(iw_pd_dealloc(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_while_used),
        cmocka_unit_test(a_parent_uses_its_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

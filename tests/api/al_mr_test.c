/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions, shared ones among them, and windows. */
#include "al_kit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t memory[512];

static ib_mr_create_t all_of_it(ib_access_t access)
{
    return (ib_mr_create_t){memory, sizeof memory, access};
}

static void registered_memory(void **state)
{
    (void)state;
    net32_t lkey, rkey;
    ib_mr_handle_t mr;
    ib_mr_attr_t attr;
    ib_mr_create_t how = all_of_it(IB_AC_LOCAL_WRITE | IB_AC_RDMA_READ);
    IS(ib_reg_mem(NULL, &how, &lkey, &rkey, &mr), INVALID_PD_HANDLE);
    IS(ib_reg_mem(w.pd, NULL, &lkey, &rkey, &mr), INVALID_PARAMETER);
    IS(ib_reg_mem(w.pd, &how, NULL, &rkey, &mr), INVALID_PARAMETER);
    IS(ib_reg_mem(w.pd, &how, &lkey, NULL, &mr), INVALID_PARAMETER);
    IS(ib_reg_mem(w.pd, &how, &lkey, &rkey, NULL), INVALID_PARAMETER);
    ib_mr_create_t bad = all_of_it(IB_AC_RDMA_WRITE);
    IS(ib_reg_mem(w.pd, &bad, &lkey, &rkey, &mr), INVALID_PERMISSION);
    bad.access_ctrl = 0x4000;
    IS(ib_reg_mem(w.pd, &bad, &lkey, &rkey, &mr), UNSUPPORTED);
    bad = all_of_it(IB_AC_LOCAL_WRITE);
    bad.vaddr = (void *)(uintptr_t)4096; /* where nothing is */
    IS(ib_reg_mem(w.pd, &bad, &lkey, &rkey, &mr), INVALID_PARAMETER);

    OK(ib_reg_mem(w.pd, &how, &lkey, &rkey, &mr));
    IS(ib_query_mr(NULL, &attr), INVALID_MR_HANDLE);
    IS(ib_query_mr(mr, NULL), INVALID_PARAMETER);
    OK(ib_query_mr(mr, &attr));
    assert_ptr_equal(attr.h_pd, w.pd);
    assert_int_equal(attr.lkey, lkey);
    assert_int_equal(attr.rkey, rkey);
    assert_int_equal(attr.access_ctrl, how.access_ctrl);
    assert_true(attr.local_lb == (uintptr_t)memory);
    assert_true(attr.local_ub - attr.local_lb == sizeof memory);
    assert_true(attr.remote_ub == attr.local_ub);
    OK(ib_dereg_mr(mr));
    IS(ib_dereg_mr(mr), INVALID_MR_HANDLE);
}

static void changed_memory(void **state)
{
    (void)state;
    net32_t lkey, rkey;
    ib_mr_handle_t mr;
    ib_mr_attr_t attr;
    ib_pd_handle_t other;
    ib_mr_create_t how = all_of_it(IB_AC_LOCAL_WRITE);
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &other));
    OK(ib_reg_mem(w.pd, &how, &lkey, &rkey, &mr));
    const ib_mr_mod_t access = IB_MR_MOD_ACCESS;
    IS(ib_rereg_mem(NULL, access, &how, &lkey, &rkey, NULL), INVALID_MR_HANDLE);
    IS(ib_rereg_mem(mr, access, &how, NULL, &rkey, NULL), INVALID_PARAMETER);
    IS(ib_rereg_mem(mr, access, &how, &lkey, NULL, NULL), INVALID_PARAMETER);
    IS(ib_rereg_mem(mr, access, NULL, &lkey, &rkey, NULL), INVALID_PARAMETER);
    IS(ib_rereg_mem(mr, 0, &how, &lkey, &rkey, NULL), INVALID_PARAMETER);
    IS(ib_rereg_mem(mr, 8, &how, &lkey, &rkey, NULL), INVALID_PARAMETER);
    IS(ib_rereg_mem(mr, IB_MR_MOD_PD, NULL, &lkey, &rkey, NULL), INVALID_PD_HANDLE);
    ib_mr_create_t bad = all_of_it(IB_AC_RDMA_WRITE);
    IS(ib_rereg_mem(mr, access, &bad, &lkey, &rkey, NULL), INVALID_PERMISSION);
    bad.access_ctrl = 0x4000;
    IS(ib_rereg_mem(mr, access, &bad, &lkey, &rkey, NULL), UNSUPPORTED);
    bad = all_of_it(IB_AC_LOCAL_WRITE);
    bad.vaddr = NULL;
    IS(ib_rereg_mem(mr, IB_MR_MOD_ADDR, &bad, &lkey, &rkey, NULL), INVALID_SETTING);

    how.access_ctrl |= IB_AC_RDMA_WRITE;
    OK(ib_rereg_mem(mr, access, &how, &lkey, &rkey, NULL));
    OK(ib_query_mr(mr, &attr));
    assert_int_equal(attr.access_ctrl, how.access_ctrl);
    assert_int_equal(attr.lkey, lkey);
    how.length = 64;
    OK(ib_rereg_mem(mr, IB_MR_MOD_ADDR | IB_MR_MOD_PD, &how, &lkey, &rkey, other));
    OK(ib_query_mr(mr, &attr));
    assert_ptr_equal(attr.h_pd, other);
    assert_true(attr.local_ub - attr.local_lb == 64);
    assert_int_equal(attr.rkey, rkey);

    uint64_t vaddr = 0;
    ib_phys_create_t phys = {.length = 1};
    IS(ib_rereg_phys(NULL, IB_MR_MOD_PD, NULL, &vaddr, &lkey, &rkey, w.pd), INVALID_MR_HANDLE);
    IS(ib_rereg_phys(mr, IB_MR_MOD_PD, NULL, NULL, &lkey, &rkey, w.pd), INVALID_PARAMETER);
    IS(ib_rereg_phys(mr, IB_MR_MOD_ADDR, NULL, &vaddr, &lkey, &rkey, w.pd), INVALID_PARAMETER);
    IS(ib_rereg_phys(mr, IB_MR_MOD_ADDR, &phys, &vaddr, &lkey, &rkey, w.pd), UNSUPPORTED);
    IS(ib_rereg_phys(mr, IB_MR_MOD_PD, NULL, &vaddr, &lkey, &rkey, NULL), INVALID_PD_HANDLE);
    OK(ib_rereg_phys(mr, IB_MR_MOD_PD, NULL, &vaddr, &lkey, &rkey, w.pd));
    assert_true(vaddr == (uintptr_t)memory);
    OK(ib_dealloc_pd(other, ib_sync_destroy));
    OK(ib_query_mr(mr, &attr));
    assert_ptr_equal(attr.h_pd, w.pd);
    OK(ib_dereg_mr(mr));
}

static void shared_memory_of_one_process(void **state)
{
    (void)state;
    net32_t lkey, rkey, lkey2, rkey2;
    uint64_t vaddr = 0;
    ib_mr_handle_t mr, share;
    ib_pd_handle_t other;
    ib_mr_create_t how = all_of_it(IB_AC_LOCAL_WRITE);
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &other));
    OK(ib_reg_mem(w.pd, &how, &lkey, &rkey, &mr));
    IS(ib_reg_shared(NULL, w.pd, 0, &vaddr, &lkey2, &rkey2, &share), INVALID_MR_HANDLE);
    IS(ib_reg_shared(mr, NULL, 0, &vaddr, &lkey2, &rkey2, &share), INVALID_PD_HANDLE);
    IS(ib_reg_shared(mr, w.pd, 0, NULL, &lkey2, &rkey2, &share), INVALID_PARAMETER);
    IS(ib_reg_shared(mr, w.pd, 0, &vaddr, &lkey2, &rkey2, NULL), INVALID_PARAMETER);
    IS(ib_reg_shared(mr, w.pd, IB_AC_ATOMIC, &vaddr, &lkey2, &rkey2, &share), INVALID_PERMISSION);
    IS(ib_reg_shared(mr, w.pd, 0x4000, &vaddr, &lkey2, &rkey2, &share), UNSUPPORTED);
    OK(ib_reg_shared(mr, other, IB_AC_RDMA_READ, &vaddr, &lkey2, &rkey2, &share));
    assert_true(vaddr == (uintptr_t)memory);
    assert_int_not_equal(lkey, lkey2);
    IS(ib_dereg_mr(mr), RESOURCE_BUSY);
    IS(ib_rereg_mem(mr, IB_MR_MOD_ACCESS, &how, &lkey, &rkey, NULL), RESOURCE_BUSY);
    OK(ib_dereg_mr(share));
    OK(ib_dereg_mr(mr));

    /* A domain takes its region along, whoever shares that. */
    ib_pd_handle_t first;
    OK(ib_alloc_pd(w.ca, IB_PDT_NORMAL, NULL, &first));
    OK(ib_reg_mem(first, &how, &lkey, &rkey, &mr));
    OK(ib_reg_shared(mr, other, 0, &vaddr, &lkey2, &rkey2, &share));
    OK(ib_dealloc_pd(first, ib_sync_destroy));
    OK(ib_dereg_mr(share));
    OK(ib_dealloc_pd(other, ib_sync_destroy));
}

static ib_api_status_t shmid_of(uint8_t number, uint64_t length, uint64_t *vaddr,
                                ib_mr_handle_t *mr)
{
    net32_t lkey, rkey;
    ib_shmid_t id = {number, 2, 3, [60] = (uint8_t)getpid(), [61] = (uint8_t)(getpid() >> 8)};
    ib_mr_create_t how = {NULL, length, IB_AC_LOCAL_WRITE};
    return ib_reg_shmid(w.pd, id, &how, vaddr, &lkey, &rkey, mr);
}

static void shared_memory_by_number(void **state)
{
    (void)state;
    net32_t key;
    uint64_t here, there, vaddr;
    ib_mr_handle_t a, b, c;
    ib_shmid_t id = {1};
    ib_mr_create_t how = {NULL, 4096, IB_AC_LOCAL_WRITE};
    IS(ib_reg_shmid(NULL, id, &how, &vaddr, &key, &key, &a), INVALID_PD_HANDLE);
    IS(ib_reg_shmid(w.pd, id, NULL, &vaddr, &key, &key, &a), INVALID_PARAMETER);
    IS(ib_reg_shmid(w.pd, id, &how, NULL, &key, &key, &a), INVALID_PARAMETER);
    how.access_ctrl = IB_AC_RDMA_WRITE;
    IS(ib_reg_shmid(w.pd, id, &how, &vaddr, &key, &key, &a), INVALID_PERMISSION);
    IS(shmid_of(1, 0, &here, &a), INVALID_PARAMETER);
    OK(shmid_of(1, 8192, &here, &a));
    OK(shmid_of(1, 8192, &there, &b));
    IS(shmid_of(1, 4096, &vaddr, &c), INVALID_SETTING);
    assert_true(here != there);
    *(volatile uint64_t *)(uintptr_t)here = 4711;
    assert_true(*(volatile uint64_t *)(uintptr_t)there == 4711);
    OK(ib_dereg_mr(a));
    assert_true(*(volatile uint64_t *)(uintptr_t)there == 4711);
    OK(ib_dereg_mr(b));
    OK(shmid_of(1, 4096, &here, &a)); /* it had ended, with the last */
    assert_true(*(volatile uint64_t *)(uintptr_t)here == 0);
    OK(ib_dereg_mr(a));
}

/* What another user has made under a name of ours is not ours to use, nor to remove. */
static void shared_memory_of_another_user(void **state)
{
    (void)state;
    char name[256];
    uint8_t id[64] = {2, 2, 3, [60] = (uint8_t)getpid(), [61] = (uint8_t)(getpid() >> 8)};
    uint64_t vaddr;
    ib_mr_handle_t mr;
    if (geteuid() != 0)
        skip();
    int n = snprintf(name, sizeof name, "/dev/shm/ibal-0-");
    for (size_t i = 0; i < sizeof id; i++)
        n += snprintf(name + n, sizeof name - (size_t)n, "%02x", id[i]);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fchown(fd, 65534, 65534), 0);
    IS(shmid_of(2, 4096, &vaddr, &mr), INVALID_PERMISSION);
    assert_int_equal(unlink(name), 0);
    close(fd);
    OK(shmid_of(2, 4096, &vaddr, &mr));
    OK(ib_dereg_mr(mr));
}

/* ---- windows ---- */

static struct al_link l;

static ib_bind_wr_t bind_of(net32_t rkey)
{
    return (ib_bind_wr_t){
        .wr_id = 50,
        .send_opt = IB_SEND_OPT_SIGNALED,
        .h_mr = l.b.mr,
        .access_ctrl = IB_AC_RDMA_WRITE,
        .current_rkey = rkey,
        .local_ds = {.vaddr = (uintptr_t)&l.b.data[8], .length = 16},
    };
}

/* A Write, and a Send behind it that tells the peer of it. */
static void write_through(net32_t rkey, unsigned word)
{
    ib_local_ds_t ds, none;
    ib_send_wr_t wr = al_wr(&l.a, &ds, 0, WR_RDMA_WRITE), send = al_wr(&l.a, &none, 0, WR_SEND);
    wr.remote_ops.vaddr = (uintptr_t)&l.b.data[word];
    wr.remote_ops.rkey = rkey;
    wr.p_next = &send;
    al_recv(&l.b, 1);
    OK(al_post(&l.a, &wr));
    assert_int_equal(al_poll(&l.a).status, IB_WCS_SUCCESS);
    assert_int_equal(al_poll(&l.a).status, IB_WCS_SUCCESS);
    assert_int_equal(al_poll(&l.b).status, IB_WCS_SUCCESS);
}

static void windows_are_bound(void **state)
{
    (void)state;
    net32_t first, rkey, got;
    ib_mw_handle_t mw;
    ib_pd_handle_t pd;
    al_link_connect(&l, &w);
    IS(ib_create_mw(NULL, &first, &mw), INVALID_PD_HANDLE);
    IS(ib_create_mw(w.pd, NULL, &mw), INVALID_PARAMETER);
    IS(ib_create_mw(w.pd, &first, NULL), INVALID_PARAMETER);
    OK(ib_create_mw(w.pd, &first, &mw));
    IS(ib_query_mw(NULL, &pd, &got), INVALID_MW_HANDLE);
    IS(ib_query_mw(mw, NULL, &got), INVALID_PARAMETER);
    IS(ib_query_mw(mw, &pd, NULL), INVALID_PARAMETER);
    OK(ib_query_mw(mw, &pd, &got));
    assert_ptr_equal(pd, w.pd);
    assert_int_equal(got, first);

    ib_bind_wr_t bind = bind_of(first), bad = bind;
    IS(ib_bind_mw(NULL, l.b.qp, &bind, &rkey), INVALID_MW_HANDLE);
    IS(ib_bind_mw(mw, NULL, &bind, &rkey), INVALID_QP_HANDLE);
    IS(ib_bind_mw(mw, l.b.qp, NULL, &rkey), INVALID_PARAMETER);
    IS(ib_bind_mw(mw, l.b.qp, &bind, NULL), INVALID_PARAMETER);
    bad.h_mr = NULL;
    IS(ib_bind_mw(mw, l.b.qp, &bad, &rkey), INVALID_MR_HANDLE);
    bad = bind;
    bad.current_rkey ^= 1;
    IS(ib_bind_mw(mw, l.b.qp, &bad, &rkey), INVALID_RKEY);
    bad = bind;
    bad.access_ctrl = IB_AC_LOCAL_WRITE;
    IS(ib_bind_mw(mw, l.b.qp, &bad, &rkey), UNSUPPORTED);
    bad = bind;
    bad.local_ds.length = sizeof l.b.data;
    IS(ib_bind_mw(mw, l.b.qp, &bad, &rkey), INVALID_PARAMETER);
    net32_t lkey2, rkey2;
    ib_mr_handle_t plain;
    ib_mr_create_t how = all_of_it(IB_AC_LOCAL_WRITE);
    OK(ib_reg_mem(w.pd, &how, &lkey2, &rkey2, &plain));
    bad = bind;
    bad.h_mr = plain;
    IS(ib_bind_mw(mw, l.b.qp, &bad, &rkey), INVALID_PERMISSION);
    OK(ib_dereg_mr(plain));

    OK(ib_bind_mw(mw, l.b.qp, &bind, &rkey));
    ib_wc_t wc = al_poll(&l.b);
    assert_int_equal(wc.status, IB_WCS_SUCCESS);
    assert_int_equal(wc.wc_type, IB_WC_MW_BIND);
    assert_int_equal(wc.wr_id, 50);
    assert_int_not_equal(rkey, first);
    OK(ib_query_mw(mw, &pd, &got));
    assert_int_equal(got, rkey);
    IS(ib_dereg_mr(l.b.mr), RESOURCE_BUSY); /* the rule "dereg busy MR" */

    l.a.data[0] = 99;
    write_through(rkey, 9);
    assert_true(l.b.data[9] == 99);

    bind = bind_of(rkey);
    bind.local_ds.length = 0; /* it leaves the region */
    OK(ib_bind_mw(mw, l.b.qp, &bind, &rkey));
    assert_int_equal(al_poll(&l.b).status, IB_WCS_SUCCESS);
    OK(ib_dereg_mr(l.b.mr));
    OK(ib_destroy_mw(mw));
    IS(ib_destroy_mw(mw), INVALID_MW_HANDLE);
    ib_mr_create_t all = {l.b.data, sizeof l.b.data, IB_AC_LOCAL_WRITE | IB_AC_MW_BIND};
    OK(ib_reg_mem(w.pd, &all, &l.b.lkey, &l.b.rkey, &l.b.mr));
    al_link_close(&l);
}

/* A bind that cannot be posted leaves the window where it was. */
static void a_bind_that_is_refused(void **state)
{
    (void)state;
    net32_t first, rkey;
    ib_mw_handle_t mw;
    al_link_listen(&l, &w);
    OK(ib_create_mw(w.pd, &first, &mw));
    ib_bind_wr_t bind = bind_of(first);
    IS(ib_bind_mw(mw, l.b.qp, &bind, &rkey), INVALID_QP_STATE);
    OK(ib_dereg_mr(l.b.mr));
    ib_mr_create_t all = {l.b.data, sizeof l.b.data, IB_AC_LOCAL_WRITE | IB_AC_MW_BIND};
    OK(ib_reg_mem(w.pd, &all, &l.b.lkey, &l.b.rkey, &l.b.mr));
    OK(ib_destroy_mw(mw));
    al_link_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registered_memory),
        cmocka_unit_test(changed_memory),
        cmocka_unit_test(shared_memory_of_one_process),
        cmocka_unit_test(shared_memory_by_number),
        cmocka_unit_test(shared_memory_of_another_user),
        cmocka_unit_test(windows_are_bound),
        cmocka_unit_test(a_bind_that_is_refused),
    };
    return cmocka_run_group_tests(tests, al_setup, al_teardown);
}

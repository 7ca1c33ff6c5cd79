/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs commands that come by ioctl(), method INVOKE_WRITE. */
#include "api/uverbs_kit.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <setjmp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { ATTRS = 6 };

struct call {
    struct ib_uverbs_ioctl_hdr hdr;
    struct ib_uverbs_attr attrs[ATTRS];
};

static struct call begin(uint64_t number)
{
    struct call c = {
        .hdr = {.object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INVOKE_WRITE}};
    c.hdr.num_attrs = 1;
    c.attrs[0] = (struct ib_uverbs_attr){
        .attr_id = UVERBS_ATTR_WRITE_CMD, .len = 8, .flags = UVERBS_ATTR_F_MANDATORY};
    c.attrs[0].data = number;
    return c;
}

/* What is no longer than the member is in it. */
static void add_in(struct call *c, uint16_t id, const void *bytes, size_t len)
{
    struct ib_uverbs_attr *a = &c->attrs[c->hdr.num_attrs++];
    *a = (struct ib_uverbs_attr){.attr_id = id, .len = (uint16_t)len};
    if (len <= sizeof a->data)
        memcpy(&a->data, bytes, len);
    else
        a->data = (uintptr_t)bytes;
}

static void add_out(struct call *c, uint16_t id, void *bytes, size_t len)
{
    struct ib_uverbs_attr *a = &c->attrs[c->hdr.num_attrs++];
    *a = (struct ib_uverbs_attr){.attr_id = id, .len = (uint16_t)len};
    a->data = (uintptr_t)bytes;
}

static int invoke(int fd, struct call *c)
{
    c->hdr.length = (uint16_t)(sizeof c->hdr + c->hdr.num_attrs * sizeof c->attrs[0]);
    errno = 0;
    return anywarp_uverbs_ioctl(fd, RDMA_VERBS_IOCTL, c) ? errno : 0;
}

/* A command with all of its struct and room for its response. */
static int simple(int fd, uint32_t number, const void *in, size_t in_len, void *out, size_t out_len)
{
    struct call c = begin(number);
    if (in_len)
        add_in(&c, UVERBS_ATTR_CORE_IN, in, in_len);
    if (out_len)
        add_out(&c, UVERBS_ATTR_CORE_OUT, out, out_len);
    return invoke(fd, &c);
}

/* Short structs and responses are ENOSPC here, as in the kernel; else as what is written. */
static void every_row_by_ioctl(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    for (size_t i = 0; i < uv_row_count; i++) {
        const struct uv_row *row = &uv_rows[i];
        uint8_t in[112] = {0};
        uint64_t out[28];
        assert_int_equal(simple(w.fd, row->number, in, row->in - 4, out, 224), ENOSPC);
        assert_int_equal(simple(w.fd, row->number, NULL, 0, NULL, 0), ENOSPC);
        if (row->out)
            assert_int_equal(simple(w.fd, row->number, in, row->in, out, row->out - 4), ENOSPC);
        if (row->out)
            assert_int_equal(simple(w.fd, row->number, in, row->in, NULL, row->out), EFAULT);
    }
    uint32_t in[28] = {0}, out[60];
    assert_int_equal(simple(w.fd, 6, in, 112, out, 200), EINVAL);
    assert_int_equal(simple(w.fd, 60, in, 112, out, 200), EINVAL);
    assert_int_equal(simple(w.fd,
                            IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, in,
                            112, out, 200),
                     ENOSYS);
    struct call beyond = begin(UINT64_C(1) << 32);
    assert_int_equal(invoke(w.fd, &beyond), EINVAL);
    uv_unmake(&w);
}

/* The same objects, of which each command tells the same, whichever way it comes. */
static void both_ways_say_the_same(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    uint32_t device[2][44], none[4] = {0};
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_QUERY_DEVICE, none, 8, device[0], 176), 0);
    assert_int_equal(simple(w.fd, IB_USER_VERBS_CMD_QUERY_DEVICE, none, 8, device[1], 176), 0);
    assert_memory_equal(device[0], device[1], sizeof device[0]);

    uint32_t qp[2][32], query[4] = {0, 0, w.qp, 0xffff};
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_QUERY_QP, query, 16, qp[0], 128), 0);
    assert_int_equal(simple(w.fd, IB_USER_VERBS_CMD_QUERY_QP, query, 16, qp[1], 128), 0);
    assert_memory_equal(qp[0], qp[1], sizeof qp[0]);

    uint32_t pd;
    assert_int_equal(simple(w.fd, IB_USER_VERBS_CMD_ALLOC_PD, none, 8, &pd, 4), 0);
    assert_int_equal(simple(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &pd, 4, NULL, 0), 0);
    assert_int_equal(simple(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &pd, 4, NULL, 0), EINVAL);
    uv_unmake(&w);
}

/* Work requests come as the provider's part, right behind the struct or elsewhere. */
static void posted_and_polled_by_ioctl(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    for (int apart = 0; apart < 2; apart++) {
        uint64_t bytes[7] = {0}, elsewhere[4];
        struct ib_uverbs_post_recv head = {
            .qp_handle = w.qp, .wr_count = 1, .sge_count = 1, .wqe_size = 16};
        struct ib_uverbs_recv_wr wr = {.wr_id = 70u + (unsigned)apart, .num_sge = 1};
        struct ib_uverbs_sge sge = {(uintptr_t)w.memory, 8, w.lkey};
        memcpy(bytes, &head, 24);
        memcpy(bytes + 3, &wr, 16);
        memcpy(bytes + 5, &sge, 16);
        memcpy(elsewhere, bytes + 3, 32);
        uint32_t bad = 9;
        struct call c = begin(IB_USER_VERBS_CMD_POST_RECV);
        add_in(&c, UVERBS_ATTR_CORE_IN, bytes, 24);
        add_in(&c, UVERBS_ATTR_UHW_IN, apart ? elsewhere : bytes + 3, 32);
        add_out(&c, UVERBS_ATTR_CORE_OUT, &bad, 4);
        assert_int_equal(invoke(w.fd, &c), 0);
        assert_int_equal(bad, 0);
    }
    assert_int_equal(uv_modify(&w, IBV_QPS_ERR, 0), 0);
    uint64_t resp[1 + 2 * sizeof(struct ib_uverbs_wc) / 8];
    uint32_t poll_cq[4] = {0, 0, w.cq, 2}, count;
    struct ib_uverbs_wc wc[2];
    struct call c = begin(IB_USER_VERBS_CMD_POLL_CQ);
    add_in(&c, UVERBS_ATTR_CORE_IN, poll_cq, 16);
    add_out(&c, UVERBS_ATTR_CORE_OUT, resp, 8);
    add_out(&c, UVERBS_ATTR_UHW_OUT, resp + 1, sizeof resp - 8);
    assert_int_equal(invoke(w.fd, &c), 0);
    memcpy(&count, resp, 4);
    memcpy(wc, resp + 1, sizeof wc);
    assert_int_equal(count, 2);
    assert_int_equal(wc[0].wr_id, 70);
    assert_int_equal(wc[1].wr_id, 71);
    assert_int_equal(wc[1].status, IBV_WC_WR_FLUSH_ERR);

    /* What a provider would have answered is zeros. */
    uint32_t none[2] = {0}, pd, rest[4] = {1, 2, 3, 4};
    c = begin(IB_USER_VERBS_CMD_ALLOC_PD);
    add_in(&c, UVERBS_ATTR_CORE_IN, none, 8);
    add_out(&c, UVERBS_ATTR_CORE_OUT, &pd, 4);
    add_out(&c, UVERBS_ATTR_UHW_OUT, rest, sizeof rest);
    assert_int_equal(invoke(w.fd, &c), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(rest[i], 0);
    assert_int_equal(uv_send(w.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &pd, 4, NULL, 0), 0);
    uv_unmake(&w);
}

#define ALTERED(change, error)                                                                     \
    do {                                                                                           \
        c = good;                                                                                  \
        c.change;                                                                                  \
        assert_int_equal(invoke(w.fd, &c), error);                                                 \
    } while (0)

/* Headers and attributes that are none. */
static void malformed(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uv_make(&w);
    uint32_t in[2] = {0}, out[44];
    struct call good = begin(IB_USER_VERBS_CMD_QUERY_DEVICE), c;
    add_in(&good, UVERBS_ATTR_CORE_IN, in, 8);
    add_out(&good, UVERBS_ATTR_CORE_OUT, out, 176);
    assert_int_equal(invoke(w.fd, &good), 0);

    errno = 0;
    assert_int_equal(anywarp_uverbs_ioctl(w.fd, FIONREAD, &good), -1);
    assert_int_equal(errno, ENOTTY);
    assert_int_equal(anywarp_uverbs_ioctl(w.channel, RDMA_VERBS_IOCTL, &good), -1);
    assert_int_equal(errno, ENOTTY);
    assert_int_equal(anywarp_uverbs_ioctl(-1, RDMA_VERBS_IOCTL, &good), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(anywarp_uverbs_ioctl(w.fd, RDMA_VERBS_IOCTL, NULL), -1);
    assert_int_equal(errno, EFAULT);

    ALTERED(hdr.object_id++, EPROTONOSUPPORT);
    ALTERED(hdr.method_id++, EPROTONOSUPPORT);
    ALTERED(hdr.reserved1 = 1, EPROTONOSUPPORT);
    ALTERED(hdr.reserved2 = 1, EPROTONOSUPPORT);
    ALTERED(attrs[0].len = 4, EINVAL);
    ALTERED(attrs[1].attr_data.reserved = 1, EINVAL);
    ALTERED(attrs[0] = c.attrs[1], EINVAL);                   /* no command, and a struct twice */
    ALTERED(attrs[1].attr_id = UVERBS_ATTR_CORE_OUT, EINVAL); /* twice */
    c = good;
    add_in(&c, 77, in, 4);
    assert_int_equal(invoke(w.fd, &c), 0);
    c.attrs[3].flags = UVERBS_ATTR_F_MANDATORY;
    assert_int_equal(invoke(w.fd, &c), EPROTONOSUPPORT);
    c = good;
    c.attrs[1].len = 64;
    c.attrs[1].data = 64;
    assert_int_equal(invoke(w.fd, &c), EFAULT);

    good.hdr.length++;
    assert_int_equal(anywarp_uverbs_ioctl(w.fd, RDMA_VERBS_IOCTL, &good), -1);
    assert_int_equal(errno, EINVAL);
    good.hdr.num_attrs = UINT16_MAX;
    good.hdr.length = (uint16_t)(sizeof good.hdr + UINT16_MAX * sizeof good.attrs[0]);
    assert_int_equal(anywarp_uverbs_ioctl(w.fd, RDMA_VERBS_IOCTL, &good), -1);
    assert_int_equal(errno, EINVAL);

    /* Attributes that end where memory does. */
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    good.hdr.num_attrs = 3;
    good.hdr.length = (uint16_t)(sizeof good.hdr + 3 * sizeof good.attrs[0]);
    memcpy(pages + 4096 - good.hdr.length, &good, good.hdr.length);
    assert_int_equal(anywarp_uverbs_ioctl(w.fd, RDMA_VERBS_IOCTL, pages + 4096 - good.hdr.length),
                     0);
    memcpy(pages + 4096 - sizeof good.hdr, &good.hdr, sizeof good.hdr);
    assert_int_equal(anywarp_uverbs_ioctl(w.fd, RDMA_VERBS_IOCTL, pages + 4096 - sizeof good.hdr),
                     -1);
    assert_int_equal(errno, EFAULT);
    munmap(pages, 8192);
    uv_unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_by_ioctl),
        cmocka_unit_test(both_ways_say_the_same),
        cmocka_unit_test(posted_and_polled_by_ioctl),
        cmocka_unit_test(malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

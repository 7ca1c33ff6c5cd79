/* SPDX-License-Identifier: BSD-2-Clause */
/* What is mapped for DMA: an address is itself, and that it is mapped is known. */
#include "kverbs_kit.h"

#include <errno.h>
#include <stdlib.h>

static void an_address_is_itself(void **state)
{
    (void)state;
    struct ib_device *d = kit_device();
    static char some[100];
    enum dma_data_direction dir = DMA_BIDIRECTIONAL;
    u64 at = ib_dma_map_single(d, some, sizeof some, dir);
    assert_int_equal(at, (uintptr_t)some);
    assert_int_equal(ib_dma_mapping_error(d, at), 0);
    ib_dma_sync_single_for_cpu(d, at, sizeof some, dir);
    ib_dma_sync_single_for_device(d, at, sizeof some, dir);
    ib_dma_unmap_single(d, at, sizeof some, dir);
    assert_int_equal(ib_dma_mapping_error(d, ib_dma_map_single(d, some, 0, dir)), -ENOMEM);

    struct page *page = alloc_page(GFP_KERNEL);
    at = ib_dma_map_page(d, page, 24, 100, DMA_FROM_DEVICE);
    assert_int_equal(at, (uintptr_t)page_address(page) + 24);
    ib_dma_unmap_page(d, at, 100, DMA_FROM_DEVICE);

    struct scatterlist sg[2];
    sg_init_table(sg, 2);
    sg_set_page(&sg[0], page, 50, 8);
    sg_set_buf(&sg[1], some, 10);
    assert_int_equal(ib_dma_map_sg(d, sg, 2, DMA_TO_DEVICE), 2);
    assert_int_equal(sg_dma_address(&sg[0]), (uintptr_t)page_address(page) + 8);
    assert_int_equal(ib_sg_dma_address(d, &sg[1]), (uintptr_t)some);
    assert_int_equal(sg_dma_len(&sg[0]), 50);
    assert_int_equal(ib_sg_dma_len(d, &sg[1]), 10);
    ib_dma_unmap_sg(d, sg, 2, DMA_TO_DEVICE);
    sg[1].length = 0; /* cannot be mapped: then none is */
    assert_int_equal(ib_dma_map_sg(d, sg, 2, DMA_TO_DEVICE), 0);
    __free_page(page);

    dma_addr_t handle;
    u8 *p = ib_dma_alloc_coherent(d, 5000, &handle, GFP_KERNEL);
    assert_non_null(p);
    assert_int_equal(handle, (uintptr_t)p);
    assert_int_equal((uintptr_t)p & ~PAGE_MASK, 0);
    assert_int_equal(p[0] | p[4999], 0);
    ib_dma_free_coherent(d, 5000, p, handle);
}

static void the_same_by_struct_device(void **state)
{
    (void)state;
    struct device *d = kit_device()->dma_device;
    static char some[100];
    dma_addr_t at = dma_map_single(d, some, sizeof some, DMA_TO_DEVICE);
    assert_int_equal(dma_mapping_error(d, at), 0);
    dma_unmap_single(d, at, sizeof some, DMA_TO_DEVICE);
    struct page *page = alloc_page(GFP_KERNEL);
    at = dma_map_page(d, page, 0, PAGE_SIZE, DMA_FROM_DEVICE);
    dma_unmap_page(d, at, PAGE_SIZE, DMA_FROM_DEVICE);
    struct scatterlist sg;
    sg_init_one(&sg, some, sizeof some);
    assert_int_equal(dma_map_sg(d, &sg, 1, DMA_TO_DEVICE), 1);
    dma_unmap_sg(d, &sg, 1, DMA_TO_DEVICE);
    void *p = dma_alloc_coherent(d, 10, &at, GFP_KERNEL);
    dma_free_coherent(d, 10, p, at);
    __free_page(page);
}

static void unmap_what_is_not(void *device)
{
    ib_dma_unmap_single(device, 4711, 10, DMA_TO_DEVICE);
}

static void unmapping_is_watched(void **state)
{
    (void)state;
    char said[512];
    struct ib_device *d = kit_device();
    kit_stderr(said, sizeof said, unmap_what_is_not, d);
    assert_non_null(strstr(said, "0x1267+10, which is not mapped"));
}

static int send_from(struct end *e, const u8 *at, u32 length)
{
    struct ib_sge sge = {(uintptr_t)at, length, e->pd->local_dma_lkey};
    struct ib_send_wr wr = {.sg_list = &sge,
                            .num_sge = 1,
                            .opcode = IB_WR_SEND,
                            .send_flags = IB_SEND_SIGNALED},
                      *bad;
    int ret = ib_post_send(e->qp, &wr, &bad);
    if (ret == 0)
        assert_int_equal(kit_poll(e->cq).status, IB_WC_SUCCESS);
    return ret;
}

/* local_dma_lkey is good for what is mapped, all of it, and as long as it is. */
static void only_what_is_mapped_is_sent(void **state)
{
    (void)state;
    enum { N = 300 };
    static u8 memory[N * 16];
    struct pair p;
    kit_open(&p, NULL);
    for (u64 i = 0; i < 40; i++)
        assert_int_equal(kit_recv(&p.b, i, 0, 1024), 0);
    /* Many, in an order that is not that of the addresses; 16 bytes each, every other. */
    for (unsigned i = 0; i < N; i += 2) {
        unsigned at = i * 77 % N;
        assert_int_equal(ib_dma_map_single(p.device, &memory[at * 16], 16, DMA_TO_DEVICE),
                         (uintptr_t)&memory[at * 16]);
    }
    assert_int_equal(send_from(&p.a, &memory[0], 16), 0);
    assert_int_equal(send_from(&p.a, &memory[32 + 3], 13), 0);
    assert_int_equal(send_from(&p.a, &memory[32 + 3], 14), -EINVAL);
    assert_int_equal(send_from(&p.a, &memory[16], 1), -EINVAL);
    assert_int_equal(send_from(&p.a, &memory[298 * 16], 16), 0);
    /* One above others: what lies in it is found behind the small ones. */
    ib_dma_map_single(p.device, memory, sizeof memory, DMA_BIDIRECTIONAL);
    assert_int_equal(send_from(&p.a, &memory[16], 500), 0);
    assert_int_equal(send_from(&p.a, &memory[sizeof memory - 1], 1), 0);
    assert_int_equal(send_from(&p.a, &memory[sizeof memory - 1], 2), -EINVAL);
    ib_dma_unmap_single(p.device, (uintptr_t)memory, sizeof memory, DMA_BIDIRECTIONAL);
    assert_int_equal(send_from(&p.a, &memory[16], 1), -EINVAL);
    /* Twice mapped is unmapped twice. */
    ib_dma_map_single(p.device, &memory[0], 16, DMA_TO_DEVICE);
    ib_dma_unmap_single(p.device, (uintptr_t)&memory[0], 16, DMA_TO_DEVICE);
    assert_int_equal(send_from(&p.a, &memory[0], 16), 0);
    for (unsigned i = 0; i < N; i += 2)
        ib_dma_unmap_single(p.device, (uintptr_t)&memory[i * 16], 16, DMA_TO_DEVICE);
    assert_int_equal(send_from(&p.a, &memory[0], 16), -EINVAL);
    kit_close(&p);
}

struct late {
    struct pair p;
    u8 *memory;
};

static void unmap_late(void *arg)
{
    struct late *l = arg;
    ib_dma_unmap_single(l->p.device, (uintptr_t)l->memory, 64, DMA_BIDIRECTIONAL);
}

/* A registration that is valid holds its memory; the complaint is as the kernel's IOMMU might. */
static void memory_that_is_registered_still(void **state)
{
    (void)state;
    static u8 memory[64];
    char said[512];
    struct late l = {.memory = memory};
    kit_open(&l.p, NULL);
    struct end *e = &l.p.a;
    ib_dma_map_single(l.p.device, memory, sizeof memory, DMA_BIDIRECTIONAL);
    struct ib_mr *mr = ib_alloc_mr(e->pd, IB_MR_TYPE_MEM_REG, 1);
    assert_int_equal(kit_register(e, mr, (uintptr_t)memory - e->dma, 64, IB_ACCESS_REMOTE_READ), 0);
    assert_int_equal(kit_poll(e->cq).status, IB_WC_SUCCESS);
    kit_stderr(said, sizeof said, unmap_late, &l);
    assert_non_null(strstr(said, "unmapped memory that is registered still"));
    assert_int_equal(ib_dereg_mr(mr), 0);
    kit_close(&l.p);
}

/* Read-only memory can be sent: it is registered as the direction says. */
static void the_direction_is_the_access(void **state)
{
    (void)state;
    static const u8 constant[64] = "constant";
    struct pair p;
    kit_open(&p, NULL);
    assert_int_equal(kit_recv(&p.b, 0, 0, 64), 0);
    ib_dma_map_single(p.device, (void *)constant, 64, DMA_TO_DEVICE);
    assert_int_equal(send_from(&p.a, constant, 64), 0);
    assert_int_equal(kit_poll(p.b.cq).status, IB_WC_SUCCESS);
    assert_string_equal((char *)p.b.buf, "constant");
    ib_dma_unmap_single(p.device, (uintptr_t)constant, 64, DMA_TO_DEVICE);
    kit_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_itself),
        cmocka_unit_test(the_same_by_struct_device),
        cmocka_unit_test(unmapping_is_watched),
        cmocka_unit_test(only_what_is_mapped_is_sent),
        cmocka_unit_test(memory_that_is_registered_still),
        cmocka_unit_test(the_direction_is_the_access),
    };
    kit_devices();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

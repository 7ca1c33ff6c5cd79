/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that reaches the op slots of a context as the header it is built with says. context.sh
 * builds it with headers of other releases, whose struct verbs_context has more slots at its head
 * or fewer.
 */
#include <infiniband/verbs.h>

#include <stdio.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    CHECK(ctx);
    ibv_free_device_list(list);
    CHECK(verbs_get_ctx(ctx));
#ifdef LATER
    CHECK(!verbs_get_ctx_op(ctx, of_a_later_release));
#endif

    struct ibv_port_attr port;
    CHECK(ibv_query_port(ctx, 1, &port) == 0);
    CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
    CHECK(verbs_get_ctx_op(ctx, query_port));
    CHECK(ibv_query_port(ctx, 2, &port) == EINVAL);

    struct ibv_device_attr_ex attr;
    CHECK(ibv_query_device_ex(ctx, NULL, &attr) == 0);
    CHECK(attr.orig_attr.phys_port_cnt == 1);

    struct ibv_values_ex now = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    CHECK(ibv_query_rt_values_ex(ctx, &now) == 0);
    CHECK(now.raw_clock.tv_sec || now.raw_clock.tv_nsec);

    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){.comp_mask = 0});
    CHECK(pd && td);
    struct ibv_mr *null = ibv_alloc_null_mr(pd);
    CHECK(null);

    struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &(struct ibv_cq_init_attr_ex){.cqe = 4});
    CHECK(cq);
    CHECK(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){.comp_mask = 0}) == ENOENT);

    CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
    CHECK(ibv_dereg_mr(null) == 0);
    CHECK(ibv_dealloc_td(td) == 0);
    CHECK(ibv_dealloc_pd(pd) == 0);
    CHECK(ibv_close_device(ctx) == 0);
    return 0;
}

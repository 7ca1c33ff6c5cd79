/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that knows adapters: it asks each driver of the distribution for its direct verbs on
 * our device, and each declines. Those are the drivers whose header is there. The ones of mlx4 and
 * mana do not look at the device, and find no memory but zeros of ours.
 */
#include <infiniband/verbs.h>

#include <infiniband/efadv.h>
#include <infiniband/mlx4dv.h>
#include <infiniband/mlx5dv.h>
#if __has_include(<infiniband/hnsdv.h>)
#include <infiniband/hnsdv.h>
#define HAVE_HNS
#endif
#if __has_include(<infiniband/manadv.h>)
#include <infiniband/manadv.h>
#define HAVE_MANA
#endif

#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_device *device;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static int failures;

static void *function(const char *library, const char *name)
{
    void *l = dlopen(library, RTLD_NOW), *f = l ? dlsym(l, name) : NULL;
    if (!f)
        errx(1, "%s", dlerror());
    return f;
}

/* A function of a driver, of the type that its header says. */
#define OF(library, name) ((__typeof__(name) *)function(library, #name))

static void row(const char *call, bool declined, int error)
{
    printf("%-28s %s: %s\n", call, declined ? "declines" : "FAILED", strerror(error));
    failures += !declined;
}

static void no(const char *call, bool supported)
{
    row(call, !supported, 0);
}

static void error(const char *call, int result)
{
    row(call, result == EOPNOTSUPP, result);
}

static void null(const char *call, void *result)
{
    row(call, !result && errno == EOPNOTSUPP, result ? 0 : errno);
}

static void mlx5(void)
{
    const char *library = "libmlx5.so.1";
    struct mlx5dv_context attr = {0};
    struct ibv_qp_init_attr_ex qp = {
        .qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
    struct ibv_cq_init_attr_ex cq = {.cqe = 1};
    no("mlx5dv_is_supported", OF(library, mlx5dv_is_supported)(device));
    error("mlx5dv_query_device", OF(library, mlx5dv_query_device)(ctx, &attr));
    errno = 0;
    null("mlx5dv_open_device",
         OF(library, mlx5dv_open_device)(device, &(struct mlx5dv_context_attr){0}));
    errno = 0;
    null("mlx5dv_create_qp",
         OF(library, mlx5dv_create_qp)(ctx, &qp, &(struct mlx5dv_qp_init_attr){0}));
    errno = 0;
    null("mlx5dv_create_cq",
         OF(library, mlx5dv_create_cq)(ctx, &cq, &(struct mlx5dv_cq_init_attr){0}));
}

static void efa(void)
{
    const char *library = "libefa.so.1";
    struct efadv_device_attr attr = {0};
    struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_DRIVER};
    struct ibv_cq_init_attr_ex cq = {.cqe = 1};
    struct efadv_cq_init_attr efa_cq = {0};
    error("efadv_query_device", OF(library, efadv_query_device)(ctx, &attr, sizeof(attr)));
    errno = 0;
    null("efadv_create_driver_qp",
         OF(library, efadv_create_driver_qp)(pd, &qp, EFADV_QP_DRIVER_TYPE_SRD));
    errno = 0;
    null("efadv_create_cq", OF(library, efadv_create_cq)(ctx, &cq, &efa_cq, sizeof(efa_cq)));
}

static void hns(void)
{
#ifdef HAVE_HNS
    const char *library = "libhns.so.1";
    struct hnsdv_context attr = {0};
    struct ibv_qp_init_attr_ex qp = {
        .qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
    no("hnsdv_is_supported", OF(library, hnsdv_is_supported)(device));
    error("hnsdv_query_device", OF(library, hnsdv_query_device)(ctx, &attr));
    errno = 0;
    null("hnsdv_create_qp",
         OF(library, hnsdv_create_qp)(ctx, &qp, &(struct hnsdv_qp_init_attr){0}));
#endif
}

/* Memory that the program got after the context, often right behind it. */
#define BLOCKS 64
#define BLOCK  1024
static unsigned char *blocks[BLOCKS];

static void fill_blocks(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK);
        memset(blocks[i], 0x5a, BLOCK);
    }
}

static bool blocks_unchanged(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < BLOCK; k++)
            if (blocks[i][k] != 0x5a)
                return false;
    return true;
}

static void harmless(const char *call)
{
    bool unchanged = blocks_unchanged();
    printf("%-28s %s\n", call, unchanged ? "is harmless" : "FAILED: writes to other memory");
    failures += !unchanged;
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i], 0x5a, BLOCK);
}

static void mlx4(void)
{
    const char *library = "libmlx4.so.1";
    struct mlx4dv_context attr = {.max_inl_recv_sz = 1};
    struct mlx4dv_ctx_allocators allocators = {.data = &allocators};
    uint8_t log = 7;
    int r = OF(library, mlx4dv_query_device)(ctx, &attr);
    row("mlx4dv_query_device", r || attr.max_inl_recv_sz == 0, r);
    OF(library, mlx4dv_set_context_attr)(ctx, MLX4DV_SET_CTX_ATTR_LOG_WQS_RANGE_SZ, &log);
    OF(library, mlx4dv_set_context_attr)(ctx, MLX4DV_SET_CTX_ATTR_BUF_ALLOCATORS, &allocators);
    harmless("mlx4dv_set_context_attr");
}

static void mana(void)
{
#ifdef HAVE_MANA
    struct manadv_ctx_allocators allocators = {.data = &allocators};
    OF("libmana.so.1", manadv_set_context_attr)(ctx, MANADV_CTX_ATTR_BUF_ALLOCATORS, &allocators);
    harmless("manadv_set_context_attr");
#endif
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    device = list ? list[0] : NULL;
    ctx = device ? ibv_open_device(device) : NULL;
    pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    if (!pd)
        err(1, "no device");
    fill_blocks();
    setvbuf(stdout, NULL, _IOLBF, 0);
    mlx5();
    efa();
    hns();
    mlx4();
    mana();

    /* It works on as if nothing had been. */
    struct ibv_port_attr port;
    struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
    bool works = cq && ibv_query_port(ctx, 1, &port) == 0 && ibv_destroy_cq(cq) == 0;
    printf("%-28s %s\n", "verbs after all this", works ? "work" : "FAILED");
    failures += !works;
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    ibv_free_device_list(list);
    return failures > 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers that the device allocates, and registration with one argument. Nothing here needs memory
 * of a special kind: a buffer is whole pages of ordinary memory.
 */
#include "env/later.h"
#include "verbs/export.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct ibv_buf {
    struct ibv_pd *pd;
    uint8_t *addr;
    size_t size, mapped;
};

/* The last field, which rdma-core 59 to 63 do not have in the struct. */
#if defined(HAVE_IBV_MR_INIT_ATTR) && !defined(HAVE_IBV_BUF)
#define BUF_OF(attr) (*(struct ibv_buf *const *)((attr) + 1))
#else
#define BUF_OF(attr) ((attr)->buf)
#endif

#define FOREIGN_BUF "a buffer of another protection domain, or a range beyond it"

VERBS_EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!pd || !buf || !size)
        return null_errno(iw_refuse(__func__, VALUE, "no pd, no buf or no bytes"));
    if (size > SIZE_MAX / 2)
        return null_errno(ENOMEM);
    struct ibv_buf *b = malloc(sizeof(*b));
    if (!b)
        return null_errno(ENOMEM);
    *b = (struct ibv_buf){.pd = pd, .size = size, .mapped = (size + page - 1) / page * page};
    b->addr = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->addr == MAP_FAILED) {
        free(b);
        return null_errno(ENOMEM);
    }
    *buf = b;
    return b->addr;
}

VERBS_EXPORT void ibv_free_buf(struct ibv_buf *buf)
{
    if (!buf)
        return;
    munmap(buf->addr, buf->mapped);
    free(buf);
}

static bool inside(const struct ibv_buf *buf, const void *addr, size_t length)
{
    uintptr_t at = (uintptr_t)addr - (uintptr_t)buf->addr;
    return at <= buf->size && length <= buf->size - at;
}

VERBS_EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
                                           size_t length, int access)
{
    if (!buf || buf->pd != pd || !inside(buf, addr, length))
        return null_errno(iw_refuse(__func__, VALUE, FOREIGN_BUF));
    return (ibv_reg_mr)(pd, addr, length, access);
}

/* There is no DMA-buf behind any. */
VERBS_EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
    return minus_errno(buf ? ENODATA : iw_refuse(__func__, ARGUMENT));
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr)
{
    const struct ibv_mr_init_attr *attr = mr_init_attr;
    const uint64_t file = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;
    const uint64_t known = IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF |
                           IBV_REG_MR_MASK_DMAH | file;
    if (!pd || !attr || (attr->comp_mask & ~known))
        return null_errno(iw_refuse(__func__, VALUE, "no pd or attributes, or this comp_mask"));
    bool in_memory = attr->comp_mask & IBV_REG_MR_MASK_ADDR;
    if (in_memory == !!(attr->comp_mask & file))
        return null_errno(iw_refuse(__func__, VALUE, "both or none of an address and a file"));
    if (!in_memory || (attr->comp_mask & IBV_REG_MR_MASK_DMAH))
        return null_errno(iw_refuse(__func__, ATTRIBUTE, "comp_mask: no files, no hints"));
    if ((attr->comp_mask & IBV_REG_MR_MASK_BUF) &&
        (!BUF_OF(attr) || BUF_OF(attr)->pd != pd ||
         !inside(BUF_OF(attr), attr->addr, attr->length)))
        return null_errno(iw_refuse(__func__, VALUE, FOREIGN_BUF));
    uint64_t iova =
        attr->comp_mask & IBV_REG_MR_MASK_IOVA ? attr->iova : (uint64_t)(uintptr_t)attr->addr;
    return ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova, (unsigned)attr->access);
}

/* ---- what only adapters have: hints to the bus, memory on the device ---- */

VERBS_EXPORT struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
                                             struct ibv_dmah_init_attr *attr)
{
    (void)context, (void)attr;
    return null_errno(iw_refuse(__func__, OFFERED));
}

VERBS_EXPORT int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
    (void)dmah;
    return iw_refuse(__func__, OFFERED);
}

VERBS_EXPORT int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
    (void)dm;
    return minus_errno(iw_refuse(__func__, OFFERED));
}

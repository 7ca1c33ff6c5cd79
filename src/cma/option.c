/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_set_option(). */
#include "cma.h"

#include <string.h>

/* Copies a value, which must have exactly this size. */
static int take(void *to, size_t size, const void *val, size_t len)
{
    if (len != size || !val)
        return -EINVAL;
    memcpy(to, val, size);
    return 0;
}

static int set_tos(struct cma_id *id, const void *val, size_t len)
{
    uint8_t tos;
    int r = take(&tos, sizeof tos, val, len);
    if (r == 0)
        r = cma_may(id, CMA_CALL_SET_TOS);
    return r < 0 ? r : iw_cm_set_tos(id->cm, tos);
}

static int set_reuseaddr(struct cma_id *id, const void *val, size_t len)
{
    int on, r = take(&on, sizeof on, val, len);
    if (r == 0)
        r = cma_may(id, on ? CMA_CALL_SET_REUSEADDR : CMA_CALL_CLEAR_REUSEADDR);
    if (r == 0)
        id->reuseaddr = on;
    return r;
}

static int set_afonly(struct cma_id *id, const void *val, size_t len)
{
    int on, r = take(&on, sizeof on, val, len);
    if (r == 0)
        r = cma_may(id, CMA_CALL_SET_AFONLY);
    if (r == 0 && id->state == CMA_ADDR_BOUND && id->bound.ss_family == AF_INET6)
        r = iw_cm_set_afonly(id->cm, on != 0);
    if (r == 0)
        id->afonly = on != 0;
    return r;
}

static int set_ack_timeout(struct cma_id *id, const void *val, size_t len)
{
    uint8_t timeout;
    if (id->pub.qp_type != IBV_QPT_RC && id->pub.qp_type != IBV_QPT_XRC_SEND)
        return -EINVAL;
    int r = take(&timeout, sizeof timeout, val, len);
    if (r == 0)
        r = cma_may(id, CMA_CALL_SET_TOS);
    if (r == 0)
        id->ack_timeout = timeout;
    return r;
}

/* Paths mean nothing to TCP; an id that is given a usable one has its route. */
static int set_path(struct cma_id *id, const void *val, size_t len)
{
    const uint32_t usable = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
    struct ibv_path_data path;
    if (!val || len == 0 || len % sizeof path != 0)
        return -EINVAL;
    for (size_t at = 0; at < len; at += sizeof path) {
        memcpy(&path, (const char *)val + at, sizeof path);
        if ((path.flags & usable) == usable)
            return cma_route_resolved_locked(id);
    }
    return -EINVAL;
}

static int set_option_locked(struct cma_id *id, int level, int name, const void *val, size_t len)
{
    if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
        return set_path(id, val, len);
    if (level != RDMA_OPTION_ID)
        return -ENOSYS;
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        return set_tos(id, val, len);
    case RDMA_OPTION_ID_REUSEADDR:
        return set_reuseaddr(id, val, len);
    case RDMA_OPTION_ID_AFONLY:
        return set_afonly(id, val, len);
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        return set_ack_timeout(id, val, len);
    default:
        return -ENOSYS;
    }
}

int rdma_set_option(struct rdma_cm_id *pub, int level, int name, void *val, size_t len)
{
    if (!pub)
        return cma_no_handle();
    struct cma_id *id = cma_id(pub);

    lock_get(&id->lock);
    int r = set_option_locked(id, level, name, val, len);
    lock_put(&id->lock);
    return cma_result(r);
}

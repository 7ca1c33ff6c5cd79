/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_set_option(). */
#include "cma.h"

#include <string.h>

#define CALL "rdma_set_option"

/* Copies a value, which must have exactly this size. */
static int take(void *to, size_t size, const void *val, size_t len)
{
    if (len != size || !val)
        return -iw_refuse(CALL, OPTION_VALUE, len);
    memcpy(to, val, size);
    return 0;
}

static int set_tos(struct cma_id *id, const void *val, size_t len)
{
    uint8_t tos = 0;
    int r = take(&tos, sizeof tos, val, len);
    if (r < 0)
        return r;
    id->tos = tos;
    return cma_transport_set_tos(id, tos);
}

static int set_reuseaddr(struct cma_id *id, const void *val, size_t len)
{
    int on = 0, r = take(&on, sizeof on, val, len);
    if (r == 0 && !on && cma_may(id, CMA_CALL_CLEAR_REUSEADDR))
        r = -iw_refuse(CALL, VALUE, "REUSEADDR taken back from an id that is bound");
    if (r == 0)
        id->reuseaddr = on;
    return r;
}

static int set_afonly(struct cma_id *id, const void *val, size_t len)
{
    int on = 0, r = take(&on, sizeof on, val, len);
    if (r == 0 && id->state == CMA_ADDR_BOUND && id->bound.ss_family == AF_INET6)
        r = cma_transport_set_afonly(id, on != 0);
    if (r == 0)
        id->afonly = on != 0;
    return r;
}

static int set_ack_timeout(struct cma_id *id, const void *val, size_t len)
{
    if (id->pub.qp_type != IBV_QPT_RC && id->pub.qp_type != IBV_QPT_XRC_SEND)
        return -iw_refuse(CALL, VALUE, "an ACK_TIMEOUT of an id without connections");
    return take(&id->ack_timeout, sizeof id->ack_timeout, val, len);
}

/* Paths mean nothing to TCP; an id that is given a usable one has its route. */
static int set_path(struct cma_id *id, const void *val, size_t len)
{
    const uint32_t usable = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
    struct ibv_path_data path;
    if (!val || len == 0 || len % sizeof path != 0)
        return -iw_refuse(CALL, OPTION_VALUE, len);
    for (size_t at = 0; at < len; at += sizeof path) {
        memcpy(&path, (const char *)val + at, sizeof path);
        if ((path.flags & usable) == usable)
            return cma_route_resolved_locked(id);
    }
    return -iw_refuse(CALL, VALUE, "paths that are not GMP, primary and bidirectional");
}

static const struct option {
    int level, name;
    enum cma_call call; /* that stands for it in the table of states */
    int (*set)(struct cma_id *id, const void *val, size_t len);
} options[] = {
    {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, CMA_CALL_SET_TOS, set_tos},
    {RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, CMA_CALL_SET_REUSEADDR, set_reuseaddr},
    {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, CMA_CALL_SET_AFONLY, set_afonly},
    {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, CMA_CALL_SET_TOS, set_ack_timeout},
    {RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, CMA_CALL_RESOLVE_ROUTE, set_path},
};

int rdma_set_option(struct rdma_cm_id *pub, int level, int name, void *val, size_t len)
{
    const struct option *end = options + sizeof options / sizeof options[0], *o = options;
    while (o < end && (o->level != level || o->name != name))
        o++;
    if (pub && o == end)
        return cma_fail(iw_refuse(CALL, OPTION, name, level));
    struct cma_id *id = pub ? cma_enter(pub, o->call) : NULL;
    if (!id)
        return cma_refused(pub);
    return cma_leave(id, iw_cm_chaos(IW_FAULT_SET_OPTION, NULL) ? -ENOMEM : o->set(id, val, len));
}

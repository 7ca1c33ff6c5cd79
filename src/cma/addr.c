/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and routes of ids. */
#include "cma.h"

#include <stdlib.h>

static int refuse_address(int r, const char *call, const struct sockaddr *addr)
{
    struct sockaddr_storage copy;
    char text[ADDR_TEXT_MAX];
    if (r == -EADDRINUSE)
        return -iw_refuse(call, PORT_IN_USE, addr_port(addr));
    if (r != -EADDRNOTAVAIL)
        return r;
    cma_addr_copy(&copy, addr);
    addr_text(&copy, text);
    return -iw_refuse(call, NOT_LOCAL, text);
}

int cma_bind_locked(struct cma_id *id, const struct sockaddr *addr, bool active)
{
    const char *call = active ? "rdma_resolve_addr" : "rdma_bind_addr";
    if (cma_addr_lacks_scope(addr))
        return -iw_refuse(call, SCOPE);
    if (!cma_port_free(id, addr))
        return -iw_refuse(call, PORT_TAKEN, addr_port(addr));
    int r = cma_transport_bind(id, addr, active);
    if (r < 0)
        return refuse_address(r, call, addr);
    cma_transport_bound(id, &id->bound);
    cma_port_claim(id);
    cma_set_state(id, CMA_CALL_BIND);
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
    if (pub && addr && addr->sa_family == AF_IB)
        return cma_fail(iw_refuse("rdma_bind_addr", FAMILY, addr->sa_family));
    bool usable = addr && addr_len(addr);
    if (!usable)
        iw_refuse("rdma_bind_addr", ARGUMENT);
    struct cma_id *id = usable ? cma_enter(pub, CMA_CALL_BIND) : NULL;
    if (!id)
        return cma_refused(pub);
    if (iw_cm_chaos(IW_FAULT_BIND_ADDR, NULL))
        return cma_leave(id, -EADDRINUSE);
    int r = cma_addr_any(addr) ? 0 : cma_device_get(id, addr, IW_CM_ANY_DEVICE);
    if (r == 0 && (r = cma_bind_locked(id, addr, false)) < 0)
        cma_device_put(id);
    if (r == 0) {
        pub->route.addr.src_storage = id->bound;
        if (pub->verbs)
            cma_host_watch(id, &pub->route.addr.src_addr);
    }
    return cma_leave(id, r);
}

/* Where a resolution starts: the address bound, the one given, or the wildcard. */
static void starting_point(const struct cma_id *id, const struct sockaddr_storage *src,
                           sa_family_t family, struct sockaddr_storage *from)
{
    if (id->state == CMA_ADDR_BOUND)
        *from = id->bound;
    else if (src->ss_family != AF_UNSPEC)
        *from = *src;
    else
        cma_addr_wildcard(family, from);
}

static void tell_no_route(const struct sockaddr_storage *dst)
{
    char text[ADDR_TEXT_MAX];
    addr_text(dst, text);
    iw_refuse("rdma_resolve_addr", NO_ROUTE, text);
}

static int resolve_locked(struct cma_id *id, const struct sockaddr_storage *src)
{
    struct sockaddr_storage *dst = &id->pub.route.addr.dst_storage, from, source;
    starting_point(id, src, dst->ss_family, &from);
    if (from.ss_family != dst->ss_family)
        return -iw_refuse("rdma_resolve_addr", VALUE, "source and destination of two families");
    int r = cma_addr_complete(dst, (struct sockaddr *)&from);
    if (r < 0)
        return -iw_refuse("rdma_resolve_addr", SCOPE);
    struct cma_event *event = NULL;
    if (!iw_cm_chaos(IW_FAULT_RESOLVE_ADDR, NULL))
        event = cma_event_create(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (!event)
        return -ENOMEM;

    int status = cma_route_source((struct sockaddr *)&from, (struct sockaddr *)dst, &source);
    if (iw_cm_chaos(IW_FAULT_ADDR_ERROR, NULL))
        status = -ENODEV;
    /* Bound now, not when connecting: the program may ask for the port. */
    if (id->state == CMA_IDLE)
        r = cma_bind_locked(id, (struct sockaddr *)(status < 0 ? &from : &source), true);
    if (r < 0) {
        free(event);
        return r;
    }
    if (status < 0) {
        tell_no_route(dst);
        event->pub.event = RDMA_CM_EVENT_ADDR_ERROR;
        event->pub.status = status;
    } else {
        id->source = source;
        addr_set_port((struct sockaddr *)&id->source, addr_port((struct sockaddr *)&id->bound));
        cma_set_state(id, CMA_CALL_RESOLVE_ADDR);
    }
    cma_event_queue(event);
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms)
{
    (void)timeout_ms; /* a look at the routing table does not wait */
    bool usable = dst_addr && addr_len(dst_addr) && (!src_addr || addr_len(src_addr));
    if (!usable)
        iw_refuse("rdma_resolve_addr", ARGUMENT);
    struct cma_id *id = usable ? cma_enter(pub, CMA_CALL_RESOLVE_ADDR) : NULL;
    if (!id)
        return cma_refused(pub);
    /* Either argument may be a field of the id. */
    struct sockaddr_storage src = {.ss_family = AF_UNSPEC};
    if (src_addr)
        cma_addr_copy(&src, src_addr);
    cma_addr_copy(&pub->route.addr.dst_storage, dst_addr);
    return cma_complete(id, resolve_locked(id, &src));
}

int cma_route_resolved_locked(struct cma_id *id)
{
    struct cma_event *event = NULL;
    if (!iw_cm_chaos(IW_FAULT_RESOLVE_ROUTE, NULL))
        event = cma_event_create(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (!event)
        return -ENOMEM;
    if (iw_cm_chaos(IW_FAULT_ROUTE_ERROR, NULL)) {
        event->pub.event = RDMA_CM_EVENT_ROUTE_ERROR;
        event->pub.status = -ETIMEDOUT;
    } else {
        cma_set_state(id, CMA_CALL_RESOLVE_ROUTE);
    }
    cma_event_queue(event);
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
    if (!timeout_ms)
        iw_refuse(__func__, VALUE, "a time of 0 ms");
    struct cma_id *id = timeout_ms ? cma_enter(pub, CMA_CALL_RESOLVE_ROUTE) : NULL;
    return id ? cma_complete(id, cma_route_resolved_locked(id)) : cma_refused(pub);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return id ? htons(addr_port(&id->route.addr.src_addr)) : 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return id ? htons(addr_port(&id->route.addr.dst_addr)) : 0;
}

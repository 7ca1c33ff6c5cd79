/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening ids. */
#include "cma/listen.h"

#include "cma.h"

#define LISTEN      "rdma_listen"
#define BACKLOG_MAX 1024

static int listen_locked(struct cma_id *id, int backlog)
{
    if (!cma_connects(id))
        return -iw_refuse(LISTEN, SERVICE);
    if (iw_cm_chaos(IW_FAULT_LISTEN, NULL))
        return -EADDRINUSE;
    if (id->state == CMA_IDLE) {
        struct sockaddr_storage any;
        cma_addr_wildcard(AF_INET, &any);
        int r = cma_bind_locked(id, (struct sockaddr *)&any, false);
        if (r < 0)
            return r;
    }
    /* A port is shared for connections only. */
    id->reuseaddr = false;
    if (!cma_port_free(id, (struct sockaddr *)&id->bound))
        return -iw_refuse(LISTEN, PORT_TAKEN, addr_port((struct sockaddr *)&id->bound));
    if (backlog <= 0 || backlog > BACKLOG_MAX)
        backlog = BACKLOG_MAX;
    lock_get(&cma_events);
    id->backlog = backlog;
    lock_put(&cma_events);
    if (id->take_stranger)
        iw_cm_take_strangers(id->cm);
    int r = cma_transport_listen(id, backlog);
    if (r == -EADDRINUSE)
        iw_refuse(LISTEN, PORT_IN_USE, addr_port((struct sockaddr *)&id->bound));
    if (r < 0)
        return r;
    id->pub.route.addr.src_storage = id->bound;
    cma_set_state(id, CMA_CALL_LISTEN);
    return 0;
}

int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
    struct cma_id *id = cma_enter(pub, CMA_CALL_LISTEN);
    return id ? cma_leave(id, listen_locked(id, backlog)) : cma_refused(pub);
}

void cma_take_strangers(struct rdma_cm_id *pub, int (*take)(void *context, int fd))
{
    struct cma_id *id = cma_id(pub);
    lock_get(&id->lock);
    id->take_stranger = take;
    lock_put(&id->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport of an id: an endpoint of connections, or one of datagrams. */
#include "cma.h"

int cma_transport_open(struct cma_id *id, iw_cm_handler *handler)
{
    if (cma_datagrams(id))
        return iw_sidr_create(&id->sidr, (uint16_t)id->pub.ps, handler, id);
    return iw_cm_create(&id->cm, handler, id);
}

void cma_transport_close(struct cma_id *id)
{
    if (id->cm)
        iw_cm_destroy(id->cm);
    if (id->sidr)
        iw_sidr_destroy(id->sidr);
    id->cm = NULL;
    id->sidr = NULL;
}

int cma_transport_bind(struct cma_id *id, const struct sockaddr *addr, bool active)
{
    bool afonly = !active && addr->sa_family == AF_INET6 && cma_afonly(id);
    if (id->sidr)
        return iw_sidr_bind(id->sidr, addr, afonly);
    return active ? iw_cm_bind_active(id->cm, addr) : iw_cm_bind(id->cm, addr, afonly);
}

int cma_transport_listen(struct cma_id *id, int backlog)
{
    return id->sidr ? iw_sidr_listen(id->sidr) : iw_cm_listen(id->cm, backlog);
}

int cma_transport_set_afonly(struct cma_id *id, bool afonly)
{
    return id->sidr ? iw_sidr_set_afonly(id->sidr, afonly) : iw_cm_set_afonly(id->cm, afonly);
}

int cma_transport_set_tos(struct cma_id *id, uint8_t tos)
{
    return id->sidr ? iw_sidr_set_tos(id->sidr, tos) : iw_cm_set_tos(id->cm, tos);
}

void cma_transport_bound(struct cma_id *id, struct sockaddr_storage *local)
{
    if (id->sidr)
        iw_sidr_addresses(id->sidr, local, NULL);
    else
        iw_cm_addresses(id->cm, local, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_resolve_addrinfo(): a thread of its own for each lookup, as a resolver may take its time.
 * The id may be destroyed meanwhile: then nobody wants the answer.
 */
#include "cma.h"

#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct cma_lookup {
    struct cma_id *id;       /* NULL: nobody wants the answer; under cma_events */
    struct cma_event *event; /* what tells of it */
    char *node, *service;    /* or NULL */
    bool hinted;
    struct rdma_addrinfo hints;
    struct sockaddr_storage src, dst; /* of the hints */
};

static void lookup_free(struct cma_lookup *l)
{
    free(l->event);
    free(l->node);
    free(l->service);
    free(l);
}

static bool copy_text(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return *to || !from;
}

/* @return whether there is room for it */
static bool copy_address(struct sockaddr_storage *to, struct sockaddr **at,
                         const struct sockaddr *from, socklen_t len)
{
    *at = NULL;
    if (!from || !len)
        return true;
    if (len > sizeof *to)
        return false;
    memcpy(to, from, len);
    *at = (struct sockaddr *)to;
    return true;
}

static bool copy_hints(struct cma_lookup *l, const struct rdma_addrinfo *hints)
{
    if (!hints)
        return true;
    l->hinted = true;
    l->hints.ai_flags = hints->ai_flags & ~RAI_DNS;
    l->hints.ai_family = hints->ai_family;
    l->hints.ai_qp_type = hints->ai_qp_type;
    l->hints.ai_port_space = hints->ai_port_space;
    l->hints.ai_src_len = hints->ai_src_len;
    l->hints.ai_dst_len = hints->ai_dst_len;
    return copy_address(&l->src, &l->hints.ai_src_addr, hints->ai_src_addr, hints->ai_src_len) &&
           copy_address(&l->dst, &l->hints.ai_dst_addr, hints->ai_dst_addr, hints->ai_dst_len);
}

/** The errno in which an event tells what rdma_getaddrinfo() returned. */
static int status_of(int code)
{
    switch (code) {
    case 0:
        return 0;
    case -1:
    case EAI_SYSTEM:
        return -errno;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_AGAIN:
        return -EAGAIN;
    default:
        return -ENOENT;
    }
}

static void *lookup_main(void *arg)
{
    struct cma_lookup *l = arg;
    struct rdma_addrinfo *found = NULL;
    int status =
        status_of(rdma_getaddrinfo(l->node, l->service, l->hinted ? &l->hints : NULL, &found));
    l->event->pub.event = status ? RDMA_CM_EVENT_ADDRINFO_ERROR : RDMA_CM_EVENT_ADDRINFO_RESOLVED;
    l->event->pub.status = status;

    lock_get(&cma_events);
    struct cma_id *id = l->id;
    if (id) {
        struct rdma_addrinfo *old = id->found;
        id->lookup = NULL;
        id->found = found;
        found = old;
        if (cma_event_queue_locked(l->event))
            l->event = NULL;
    }
    lock_put(&cma_events);
    rdma_freeaddrinfo(found);
    lookup_free(l);
    return NULL;
}

/* Its signals are the program's threads' business. */
static int thread_start(struct cma_lookup *l)
{
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&thread, NULL, lookup_main, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        pthread_detach(thread);
    return -r;
}

#define RESOLVE "rdma_resolve_addrinfo"

static int start_locked(struct cma_id *id, struct cma_lookup *l)
{
    lock_get(&cma_events);
    int r = id->lookup ? -iw_refuse(RESOLVE, LOOKUP) : 0;
    if (r == 0) {
        id->lookup = l;
        l->id = id;
    }
    lock_put(&cma_events);
    if (r < 0 || (r = thread_start(l)) == 0)
        return r;
    lock_get(&cma_events);
    id->lookup = NULL;
    lock_put(&cma_events);
    return r;
}

static int resolve_locked(struct cma_id *id, const char *node, const char *service,
                          const struct rdma_addrinfo *hints)
{
    int flags = hints ? hints->ai_flags : 0, r = -ENOMEM;
    if ((!node && !service && !hints) || (flags & (RAI_SA | RAI_DNS)) == (RAI_SA | RAI_DNS))
        return -iw_refuse(RESOLVE, VALUE, "neither node, service nor hints, or both SA and DNS");
    if (flags & RAI_SA)
        return -iw_refuse(RESOLVE, ATTRIBUTE, "ai_flags: no subnet administrator");
    struct cma_lookup *l = calloc(1, sizeof *l);
    if (!l)
        return r;
    l->event = cma_event_create(id, RDMA_CM_EVENT_ADDRINFO_RESOLVED);
    if (l->event && copy_text(&l->node, node) && copy_text(&l->service, service))
        r = copy_hints(l, hints)
                ? start_locked(id, l)
                : -iw_refuse(RESOLVE, VALUE, "an address of another family in hints");
    if (r < 0)
        lookup_free(l);
    return r;
}

int rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node, const char *service,
                          const struct rdma_addrinfo *hints)
{
    struct cma_id *id = cma_enter(pub, CMA_CALL_TELL);
    return id ? cma_complete(id, resolve_locked(id, node, service, hints)) : cma_refused(pub);
}

int rdma_query_addrinfo(struct rdma_cm_id *pub, struct rdma_addrinfo **info)
{
    if (!pub)
        return cma_no_handle(__func__);
    if (!info)
        return cma_fail(iw_refuse(__func__, ARGUMENT));
    struct cma_id *id = cma_id(pub);
    lock_get(&cma_events);
    struct rdma_addrinfo *found = id->found;
    id->found = NULL;
    lock_put(&cma_events);
    if (!found)
        return cma_fail(ENODATA);
    *info = found;
    return 0;
}

/* Who waited on a synchronous id is not there either: the next call would take this for its answer.
 */
void cma_lookup_lost_locked(struct cma_id *id)
{
    struct cma_lookup *l = id->lookup;
    assert_held(&cma_events);
    if (!l)
        return;
    id->lookup = NULL;
    l->event->pub.event = RDMA_CM_EVENT_ADDRINFO_ERROR;
    l->event->pub.status = -ECANCELED;
    if (!id->sync && cma_event_queue_locked(l->event))
        l->event = NULL;
    lookup_free(l);
}

void cma_lookup_end(struct cma_id *id)
{
    lock_get(&cma_events);
    struct rdma_addrinfo *found = id->found;
    if (id->lookup)
        id->lookup->id = NULL;
    id->lookup = NULL;
    id->found = NULL;
    lock_put(&cma_events);
    rdma_freeaddrinfo(found);
}

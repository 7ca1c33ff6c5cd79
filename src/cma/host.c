/* SPDX-License-Identifier: BSD-2-Clause */
/* Local addresses and devices that go away: ADDR_CHANGE and DEVICE_REMOVAL. */
#include "cma.h"

#include <stdlib.h>
#include <string.h>

/* Under cma_events. */
static struct list watched = {&watched, &watched};
static struct iw_cm_local *known; /* as of the last look */
static int known_count;

static const struct iw_cm_local *find(const struct cma_host_id *h, const struct iw_cm_local *list,
                                      int n)
{
    for (int i = 0; i < n; i++)
        if (memcmp(&list[i].gid, &h->gid, sizeof h->gid) == 0 &&
            (!h->scope || h->scope == list[i].ifindex))
            return &list[i];
    return NULL;
}

/* An address that no interface lists, as most of 127.0.0.0/8, cannot go away. */
static bool moved(const struct iw_cm_local *from, const struct iw_cm_local *to)
{
    return from && (!to || from->ifindex != to->ifindex ||
                    memcmp(from->mac, to->mac, sizeof from->mac) != 0);
}

static void tell_locked(struct cma_id *id, enum rdma_cm_event_type type)
{
    struct cma_event *event = cma_event_create(id, type);
    if (event && !cma_event_queue_locked(event))
        free(event);
}

static void compare_locked(struct cma_id *id, bool present, const struct iw_cm_local *now, int n)
{
    struct cma_host_id *h = &id->host;
    bool removed = h->present && !present;
    h->present = present;
    if (removed)
        tell_locked(id, RDMA_CM_EVENT_DEVICE_REMOVAL);
    else if (moved(find(h, known, known_count), find(h, now, n)))
        tell_locked(id, RDMA_CM_EVENT_ADDR_CHANGE);
}

static void look(void)
{
    struct iw_cm_local *now;
    struct ibv_context *last = NULL;
    bool present = false;
    int n = iw_cm_locals(&now);
    if (n < 0)
        return;
    lock_get(&cma_events);
    list_for_each (it, &watched) {
        struct cma_id *id = container_of(it, struct cma_id, host.link);
        if (id->pub.verbs != last)
            present = iw_cm_device_present(id->pub.verbs);
        last = id->pub.verbs;
        compare_locked(id, present, now, n);
    }
    struct iw_cm_local *old = known;
    known = now;
    known_count = n;
    lock_put(&cma_events);
    free(old);
}

static void begin(void)
{
    look();
    iw_cm_watch_host(look);
}

static void set_gid(struct cma_host_id *h, const struct sockaddr *addr)
{
    const struct sockaddr_in6 *in6 = (const void *)addr;
    addr_ip6(addr, h->gid.raw);
    h->scope = addr->sa_family == AF_INET6 ? in6->sin6_scope_id : 0;
}

void cma_host_watch(struct cma_id *id, const struct sockaddr *addr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    lock_get(&cma_events);
    set_gid(&id->host, addr);
    id->host.present = iw_cm_device_present(id->pub.verbs);
    list_del(&id->host.link);
    list_add_tail(&watched, &id->host.link);
    lock_put(&cma_events);
}

void cma_host_unwatch(struct cma_id *id)
{
    lock_get(&cma_events);
    list_del(&id->host.link);
    lock_put(&cma_events);
}

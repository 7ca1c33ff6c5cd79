/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/device.h"

#include "al/status.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list devices = {&devices, &devices};

/* What the parent has open is the parent's. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    list_init(&devices);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

struct ibv_context *al_device_find(ib_net64_t guid)
{
    struct ibv_context *found = NULL;
    struct ibv_context **all = rdma_get_devices(NULL);
    for (int i = 0; all && all[i] && !found; i++) {
        if (ibv_get_device_guid(all[i]->device) == guid)
            found = all[i];
    }
    rdma_free_devices(all);
    return found;
}

static bool is_among(ib_net64_t guid, struct ibv_context *const *all, int count)
{
    for (int i = 0; i < count; i++) {
        if (ibv_get_device_guid(all[i]->device) == guid)
            return true;
    }
    return false;
}

size_t al_device_guids(ib_net64_t *guids, size_t room)
{
    size_t count = 0;
    struct ibv_context **all = rdma_get_devices(NULL);
    for (int i = 0; all && all[i]; i++) {
        ib_net64_t guid = ibv_get_device_guid(all[i]->device);
        if (is_among(guid, all, i))
            continue;
        if (count < room)
            guids[count] = guid;
        count++;
    }
    rdma_free_devices(all);
    return count;
}

static void ready(struct event_source *source)
{
    struct al_device *d = container_of(source, struct al_device, source);
    struct ibv_async_event event;
    if (ibv_get_async_event(d->verbs, &event) != 0)
        return;
    d->event(d, &event);
    ibv_ack_async_event(&event);
}

static struct al_device *opened_locked(const struct ibv_context *verbs)
{
    list_for_each (it, &devices) {
        struct al_device *d = container_of(it, struct al_device, link);
        if (d->verbs == verbs)
            return d;
    }
    return NULL;
}

static int open_locked(struct ibv_context *verbs,
                       void (*event)(struct al_device *, const struct ibv_async_event *),
                       struct al_device **device)
{
    struct al_device *d = calloc(1, sizeof *d);
    if (!d)
        return ENOMEM;
    *d = (struct al_device){
        .verbs = verbs,
        .source = {.fd = verbs->async_fd, .ready = ready},
        .event = event,
    };
    int error = event_thread_watch(&d->source);
    if (error) {
        free(d);
        return error;
    }
    list_add_tail(&devices, &d->link);
    *device = d;
    return 0;
}

ib_api_status_t al_device_get(ib_net64_t guid,
                              void (*event)(struct al_device *, const struct ibv_async_event *),
                              struct al_device **device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    struct ibv_context *verbs = al_device_find(guid);
    if (!verbs)
        return IB_INVALID_GUID;
    pthread_mutex_lock(&lock);
    struct al_device *d = opened_locked(verbs);
    int error = d ? 0 : open_locked(verbs, event, &d);
    if (!error)
        d->users++;
    pthread_mutex_unlock(&lock);
    *device = d;
    return al_status(error, IB_ERROR);
}

/*
 * The descriptor is free for the next who opens the adapter when the lock is. Who reads events of a
 * device without users finds nobody to tell, and does not want the lock.
 */
void al_device_put(struct al_device *d)
{
    pthread_mutex_lock(&lock);
    bool last = --d->users == 0;
    if (last) {
        list_del(&d->link);
        event_thread_forget(&d->source);
    }
    pthread_mutex_unlock(&lock);
    if (last)
        free(d);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/context.h"

#include "common/sys.h"
#include "compat/element.h"
#include "uverbs/command.h"
#include "uverbs/invoke.h"
#include "uverbs/numbers.h"

#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>

struct uv_object *uv_object_get(struct uv_context *c, enum uv_type type, uint32_t handle)
{
    return handle_get(&c->handles, type, handle);
}

struct uv_object *uv_object_add(struct uv_context *c, enum uv_type type, uint64_t user_handle)
{
    struct uv_object *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->type = type;
    o->user_handle = user_handle;
    o->handle = handle_add(&c->handles, type, o);
    if (o->handle)
        return o;
    free(o);
    return NULL;
}

void uv_object_need(struct uv_object *user, struct uv_object *o)
{
    for (int i = 0; i < 4; i++) {
        if (!user->needs[i]) {
            user->needs[i] = o;
            o->users++;
            return;
        }
    }
}

void uv_object_drop(struct uv_context *c, struct uv_object *o)
{
    for (int i = 0; i < 4 && o->needs[i]; i++)
        o->needs[i]->users--;
    if (o->channel)
        uv_file_put(o->channel);
    handle_remove(&c->handles, o->handle);
    free(o);
}

static int destroy_verbs(struct uv_object *o)
{
    switch (o->type) {
    case UV_QP:
        uv_number_remove(o);
        return ibv_destroy_qp(o->qp);
    case UV_SRQ:
        return ibv_destroy_srq(o->srq);
    case UV_CQ:
        return ibv_destroy_cq(o->cq);
    case UV_MR:
        return ibv_dereg_mr(o->mr);
    case UV_AH:
        return ibv_destroy_ah(o->ah);
    default:
        return ibv_dealloc_pd(o->pd);
    }
}

int uv_object_remove(struct uv_object *o)
{
    return o->users ? EBUSY : destroy_verbs(o);
}

int uv_object_destroy(struct uv_context *c, struct uv_object *o)
{
    int err = uv_object_remove(o);
    if (err == 0)
        uv_object_drop(c, o);
    return err;
}

/* Who waits there for events wakes up, and finds the device closed. */
static void end_events(int fd)
{
    sys_fcntl(fd, F_SETFL, O_NONBLOCK);
    sys_write(fd, &(uint64_t){1}, sizeof(uint64_t));
}

static bool is_closed(struct uv_context *c)
{
    return __atomic_load_n(&c->closed, __ATOMIC_ACQUIRE);
}

static void context_close(struct uv_file *f)
{
    struct uv_context *c = f->object;
    pthread_rwlock_wrlock(&c->lock);
    __atomic_store_n(&c->closed, true, __ATOMIC_RELEASE);
    if (c->verbs)
        end_events(c->verbs->async_fd);
    pthread_mutex_lock(&c->channels_lock);
    for (struct uv_channel *channel = c->channels; channel; channel = channel->next)
        end_events(channel->verbs->fd);
    pthread_mutex_unlock(&c->channels_lock);
    for (int type = 0; type < UV_TYPES; type++) {
        for (struct uv_object *o; (o = handle_any(&c->handles, type));) {
            if (uv_object_destroy(c, o) != 0)
                uv_object_drop(c, o);
        }
    }
    pthread_rwlock_unlock(&c->lock);
}

static void context_destroy(struct uv_file *f)
{
    struct uv_context *c = f->object;
    if (c->verbs)
        ibv_close_device(c->verbs);
    handle_fini(&c->handles);
    pthread_mutex_destroy(&c->channels_lock);
    pthread_rwlock_destroy(&c->lock);
    free(c);
}

static const struct uv_file_ops context_ops = {
    .write = uv_command,
    .ioctl = uv_ioctl,
    .close = context_close,
    .destroy = context_destroy,
};

static struct ibv_device *find_device(const char *name, int *number)
{
    struct ibv_device **list = ibv_get_device_list(NULL), *device = NULL;
    for (int i = 0; list && list[i] && !device; i++) {
        if (!name || !strcmp(ibv_get_device_name(list[i]), name))
            device = list[ *number = i];
    }
    ibv_free_device_list(list);
    return device;
}

int uv_context_open(const char *name)
{
    int number = -1;
    struct ibv_device *device = find_device(name, &number);
    if (!device)
        return -ENODEV;
    struct uv_context *c = calloc(1, sizeof *c);
    struct uv_file *f = c ? uv_file_create(&context_ops, c) : NULL;
    if (!f) {
        free(c);
        return -ENOMEM;
    }
    c->device = device;
    f->number = number;
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&c->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    pthread_mutex_init(&c->channels_lock, NULL);

    int never = (int)sys_eventfd(0, EFD_CLOEXEC);
    int fd = never < 0 ? never : uv_file_open(f, never);
    if (never >= 0)
        sys_close(never);
    uv_file_put(f);
    return fd;
}

/* The element's user handle, with its count of what was handed out. */
static uint64_t element(const struct ibv_async_event *event)
{
    struct uv_object *o;
    switch (event_element(event->event_type)) {
    case ELEMENT_CQ:
        o = event->element.cq->cq_context;
        break;
    case ELEMENT_SRQ:
        o = event->element.srq->srq_context;
        break;
    case ELEMENT_QP:
        o = event->element.qp->qp_context;
        break;
    default: /* of the port or the device */
        return (uint64_t)event->element.port_num;
    }
    __atomic_add_fetch(&o->async_events, 1, __ATOMIC_RELAXED);
    return o->user_handle;
}

static ssize_t async_read(struct uv_file *f, void *events, size_t len)
{
    struct uv_file *file = f->object;
    struct uv_context *c = file->object;
    struct ib_uverbs_async_event_desc record = {0};
    if (len < sizeof record)
        return -EINVAL;
    if (!uv_writable((uintptr_t)events, sizeof record, false))
        return -EFAULT;
    if (is_closed(c))
        return 0;
    struct ibv_async_event event;
    if (ibv_get_async_event(c->verbs, &event) != 0)
        return is_closed(c) ? 0 : -errno;
    record.element = element(&event);
    record.event_type = event.event_type;
    ibv_ack_async_event(&event); /* from here on the object may go */
    memcpy(events, &record, sizeof record);
    return sizeof record;
}

static void async_destroy(struct uv_file *f)
{
    uv_file_put(f->object);
}

static const struct uv_file_ops async_ops = {.read = async_read, .destroy = async_destroy};

int uv_async_open(struct uv_file *context)
{
    struct uv_context *c = context->object;
    struct uv_file *f = uv_file_create(&async_ops, context);
    if (!f)
        return -ENOMEM;
    uv_file_ref(context);
    int fd = uv_file_open(f, c->verbs->async_fd);
    uv_file_put(f);
    return fd;
}

static ssize_t channel_read(struct uv_file *f, void *events, size_t len)
{
    struct uv_channel *channel = f->object;
    struct uv_context *c = channel->context->object;
    struct ib_uverbs_comp_event_desc record = {0};
    if (len < sizeof record)
        return -EINVAL;
    if (!uv_writable((uintptr_t)events, sizeof record, true))
        return -EFAULT;
    if (is_closed(c))
        return 0;
    struct ibv_cq *cq;
    void *object;
    if (ibv_get_cq_event(channel->verbs, &cq, &object) != 0)
        return is_closed(c) ? 0 : -errno;
    struct uv_object *o = object;
    __atomic_add_fetch(&o->comp_events, 1, __ATOMIC_RELAXED);
    record.cq_handle = o->user_handle;
    ibv_ack_cq_events(cq, 1); /* from here on the object may go */
    memcpy(events, &record, sizeof record);
    return sizeof record;
}

static void channel_destroy(struct uv_file *f)
{
    struct uv_channel *channel = f->object;
    struct uv_context *c = channel->context->object;
    pthread_mutex_lock(&c->channels_lock);
    struct uv_channel **at = &c->channels;
    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    pthread_mutex_unlock(&c->channels_lock);
    ibv_destroy_comp_channel(channel->verbs);
    uv_file_put(channel->context);
    free(channel);
}

static const struct uv_file_ops channel_ops = {.read = channel_read, .destroy = channel_destroy};

int uv_channel_open(struct uv_file *context)
{
    struct uv_context *c = context->object;
    struct uv_channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return -ENOMEM;
    channel->verbs = ibv_create_comp_channel(c->verbs);
    int err = -errno;
    struct uv_file *f = channel->verbs ? uv_file_create(&channel_ops, channel) : NULL;
    if (!f) {
        if (channel->verbs)
            ibv_destroy_comp_channel(channel->verbs);
        free(channel);
        return err ? err : -ENOMEM;
    }
    channel->context = context;
    uv_file_ref(context);
    pthread_mutex_lock(&c->channels_lock);
    channel->next = c->channels;
    c->channels = channel;
    pthread_mutex_unlock(&c->channels_lock);
    int fd = uv_file_open(f, channel->verbs->fd);
    uv_file_put(f);
    return fd;
}

struct uv_file *uv_channel_get(struct uv_file *context, int fd)
{
    struct uv_file *f = uv_file_get(fd);
    if (f && f->ops == &channel_ops && ((struct uv_channel *)f->object)->context == context)
        return f;
    if (f)
        uv_file_put(f);
    return NULL;
}

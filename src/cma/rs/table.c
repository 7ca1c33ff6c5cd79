/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets by number. */
#include "cma/rs/rs.h"
#include "common/sys.h"

#include <stdlib.h>

#define NUMBERS 65536

static _Atomic(struct rs *) sockets[NUMBERS];
static atomic_int top;
/* Held while a socket is taken from the table, or looked up by who does not own it. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

struct rs *rs_get(int fd)
{
    if (fd < 0 || fd >= NUMBERS)
        return NULL;
    return atomic_load_explicit(&sockets[fd], memory_order_acquire);
}

struct rs *rs_hold(int fd)
{
    pthread_mutex_lock(&table_lock);
    struct rs *rs = rs_get(fd);
    if (rs)
        atomic_fetch_add(&rs->refs, 1);
    pthread_mutex_unlock(&table_lock);
    return rs;
}

void rs_release(struct rs *rs)
{
    if (atomic_fetch_sub(&rs->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&rs->lock);
    pthread_mutex_destroy(&rs->queue_lock);
    free(rs);
}

void rs_forget_all(void)
{
    pthread_mutex_init(&table_lock, NULL);
    for (int fd = 0; fd < atomic_load_explicit(&top, memory_order_relaxed); fd++)
        atomic_store_explicit(&sockets[fd], NULL, memory_order_relaxed);
}

/* Numbers below it were ever in use. */
static void raise_top(int to)
{
    int now = atomic_load_explicit(&top, memory_order_relaxed);
    while (now < to && !atomic_compare_exchange_weak(&top, &now, to))
        ;
}

struct rs *rs_create(const struct rs_sizes *sizes)
{
    struct rs *rs = calloc(1, sizeof *rs);
    if (!rs)
        return NULL;
    rs->channel = rdma_create_event_channel();
    if (!rs->channel)
        goto no_channel;
    rs->fd = rs->channel->fd;
    if (rs->fd >= NUMBERS) {
        errno = EMFILE;
        goto no_number;
    }
    sys_fcntl(rs->fd, F_SETFL, sys_fcntl(rs->fd, F_GETFL, 0) | O_NONBLOCK);
    pthread_mutex_init(&rs->lock, NULL);
    pthread_mutex_init(&rs->queue_lock, NULL);
    atomic_init(&rs->refs, 1);
    rs->sizes = *sizes;
    rs->linger.l_onoff = 1;
    rs->keepalive_timer = -1;
    list_init(&rs->waiters);
    list_init(&rs->children);
    list_init(&rs->child);
    list_init(&rs->plain);
    list_init(&rs->iomaps);
    return rs;

no_number:
    rdma_destroy_event_channel(rs->channel);
no_channel:
    free(rs);
    return NULL;
}

void rs_publish(struct rs *rs)
{
    raise_top(rs->fd + 1);
    atomic_store_explicit(&sockets[rs->fd], rs, memory_order_release);
}

void rs_destroy(struct rs *rs)
{
    pthread_mutex_lock(&table_lock);
    atomic_store_explicit(&sockets[rs->fd], NULL, memory_order_release);
    pthread_mutex_unlock(&table_lock);
    pthread_mutex_lock(&rs->lock);
    rs->phase = RS_CLOSED;
    rs_wake_all(rs);
    pthread_mutex_unlock(&rs->lock);
    rs_endpoint_destroy(rs);
    if (rs->id)
        rdma_destroy_id(rs->id);
    rs_close_plain(rs);
    if (rs->keepalive_timer >= 0)
        sys_close(rs->keepalive_timer);
    rdma_destroy_event_channel(rs->channel);
    rs_release(rs);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening: the service accepts connections, raccept() takes them from the queue. */
#include "cma/listen.h"
#include "cma/rs/address.h"
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"
#include "common/sys.h"

#include <stdlib.h>

#define WAITING_MAX 1024 /* for raccept(), of one listener */

static void leave_queue_locked(struct rs *listener, struct list *link)
{
    list_del(link);
    listener->waiting--;
}

/** Puts @p link at the end of one of the queues. @return false if too many wait, or it was shut */
static bool put_in_queue(struct rs *listener, struct list *queue, struct list *link)
{
    pthread_mutex_lock(&listener->queue_lock);
    bool room = listener->waiting < WAITING_MAX && !listener->hung_up;
    if (room) {
        listener->waiting++;
        list_add_tail(queue, link);
    }
    pthread_mutex_unlock(&listener->queue_lock);
    return room;
}

/* The child's lock is free: nobody else knows it yet. */
static int accept_child(struct rs *child, struct rdma_conn_param *param)
{
    uint8_t hello[RS_HELLO_SIZE];
    int r = rdma_migrate_id(child->id, child->channel) < 0 ? -errno : rs_endpoint_create(child);
    if (r < 0)
        return r;
    rs_hello_of(child, hello);
    param->private_data = hello;
    param->private_data_len = sizeof hello;
    return rdma_accept(child->id, param) < 0 ? -errno : 0;
}

void rs_take_in(struct rs *listener, struct rdma_cm_event *event)
{
    struct rdma_cm_id *id = event->id;
    struct rdma_conn_param param = event->param.conn;
    struct rs_hello peer;
    int r = rs_decode_hello(param.private_data, param.private_data_len, &peer);
    rdma_ack_cm_event(event);
    struct rs *child = r < 0 ? NULL : rs_create(&listener->sizes);
    if (!child) {
        rdma_reject(id, NULL, 0);
        rdma_destroy_id(id);
        return;
    }
    child->id = id;
    child->phase = RS_CONNECTING;
    child->opts = listener->opts;
    child->nodelay = listener->nodelay;
    child->six = listener->six;
    child->keepalive_s = listener->keepalive_s;
    child->listener = listener;
    rs_meet(child, &peer);
    if (!put_in_queue(listener, &listener->children, &child->child)) {
        rs_destroy(child); /* which rejects */
        return;
    }
    r = accept_child(child, &param);
    if (r == 0) {
        rs_publish(child);
        r = rs_service_add(child);
    }
    if (r < 0) {
        pthread_mutex_lock(&listener->queue_lock);
        leave_queue_locked(listener, &child->child);
        pthread_mutex_unlock(&listener->queue_lock);
        rs_destroy(child);
    }
}

void rs_arrived(struct rs *child)
{
    struct rs *listener = child->listener;
    pthread_mutex_lock(&listener->queue_lock);
    child->arrived = true;
    rs_wake_all(listener);
    pthread_mutex_unlock(&listener->queue_lock);
}

static int take_plain(void *context, int fd)
{
    struct rs *listener = context;
    struct rs_plain *plain = malloc(sizeof *plain);
    if (!plain)
        return -1;
    plain->fd = fd;
    if (!put_in_queue(listener, &listener->plain, &plain->link)) {
        free(plain);
        return -1;
    }
    pthread_mutex_lock(&listener->queue_lock);
    rs_wake_all(listener);
    pthread_mutex_unlock(&listener->queue_lock);
    return 0;
}

/* The oldest that is connected; those that failed are not shown. */
static struct rs *first(const struct rs *listener)
{
    for (struct list *l = listener->children.next; l != &listener->children; l = l->next) {
        struct rs *child = container_of(l, struct rs, child);
        if (child->arrived)
            return child;
    }
    return NULL;
}

bool rs_accept_ready(const struct rs *rs)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&rs->queue_lock;
    pthread_mutex_lock(lock);
    bool ready = rs->hung_up || first(rs) || !list_empty(&rs->plain);
    pthread_mutex_unlock(lock);
    return ready;
}

static struct rs *take(struct rs *listener)
{
    pthread_mutex_lock(&listener->queue_lock);
    struct rs *child = first(listener);
    if (child)
        leave_queue_locked(listener, &child->child);
    pthread_mutex_unlock(&listener->queue_lock);
    return child;
}

/* @return its number, or -1 */
static int take_plain_fd(struct rs *listener)
{
    pthread_mutex_lock(&listener->queue_lock);
    struct list *link = list_pop(&listener->plain);
    listener->waiting -= link != NULL;
    pthread_mutex_unlock(&listener->queue_lock);
    if (!link)
        return -1;
    struct rs_plain *plain = container_of(link, struct rs_plain, link);
    int fd = plain->fd;
    free(plain);
    return fd;
}

void rs_close_queue(struct rs *listener)
{
    struct list *link;
    for (;;) {
        pthread_mutex_lock(&listener->queue_lock);
        link = list_pop(&listener->children);
        pthread_mutex_unlock(&listener->queue_lock);
        if (!link)
            return;
        struct rs *child = container_of(link, struct rs, child);
        rs_service_remove(child);
        rs_destroy(child);
    }
}

void rs_close_plain(struct rs *listener)
{
    int fd;
    while ((fd = take_plain_fd(listener)) >= 0)
        sys_close(fd);
}

void rs_shut_listener(struct rs *listener)
{
    rs_service_lock();
    pthread_mutex_lock(&listener->lock); /* nobody takes in who is not ready to be closed */
    pthread_mutex_lock(&listener->queue_lock);
    listener->hung_up = true;
    rs_wake_all(listener);
    pthread_mutex_unlock(&listener->queue_lock);
    rs_close_queue(listener);
    rs_close_plain(listener);
    pthread_mutex_unlock(&listener->lock);
    rs_service_unlock();
}

int rlisten(int socket, int backlog)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_fail(rs_dgram_is(socket) ? EOPNOTSUPP : EBADF);
    pthread_mutex_lock(&rs->lock);
    int r = 0;
    if (rs->phase == RS_NEW || rs->phase == RS_BOUND) {
        if (rs->takes_tcp)
            cma_take_strangers(rs->id, take_plain);
        r = rdma_listen(rs->id, backlog > 0 ? backlog : 1) < 0 ? -errno : 0;
        if (r == 0) {
            rs->phase = RS_LISTENING;
            r = rs_service_add(rs);
        }
    } else if (rs->phase != RS_LISTENING)
        r = -EINVAL;
    pthread_mutex_unlock(&rs->lock);
    return r < 0 ? rs_fail(-r) : 0;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rs *rs = rs_get(socket);
    if (!rs || rs->phase != RS_LISTENING)
        return rs_fail(EBADF);
    for (;;) {
        pthread_mutex_lock(&rs->lock);
        int r = rs_wait(rs, rs_accept_ready, rs->flags & O_NONBLOCK, -1);
        if (r == 0 && rs->hung_up)
            r = -EINVAL;
        pthread_mutex_unlock(&rs->lock);
        if (r < 0)
            return rs_fail(-r);
        struct rs *child = take(rs);
        if (!child && (r = take_plain_fd(rs)) >= 0) {
            if (addr)
                sys_getpeername(r, addr, addrlen);
            return r;
        }
        if (!child)
            continue;
        rs_service_lock();
        child->listener = NULL;
        rs_service_unlock();
        if (child->phase == RS_FAILED) {
            rs_forget(child);
            continue;
        }
        if (addr)
            rs_copy_address(rdma_get_peer_addr(child->id), child->six, addr, addrlen);
        return child->fd;
    }
}

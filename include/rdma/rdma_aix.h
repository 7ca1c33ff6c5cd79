/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The error rules of AIX, for programs that depend on them: define RDMA_AIX_ERRORS before the first
 * <rdma/...> header, which then includes this, or <rdma/rdma_aix_verbs.h> if it has no calls of
 * librdmacm. From there on the names below stand for functions that
 * - return 0, or -1 with errno set; -EINVAL, -EPROTONOSUPPORT, -ENOMEM, -ENODATA, -ENODEV and
 *   -ENOSYS stand for themselves, and errno has the same;
 * - take no null pointer where AIX takes none (-EINVAL), among them the channel of an id, the
 *   parameters of a connection, and the queue pair to accept or disconnect;
 * - know one port space, RDMA_PS_TCP (-EPROTONOSUPPORT), and no depth that means "the device's
 *   maximum" (-EINVAL);
 * - do nothing once the descriptor of their channel is closed (-ENODATA);
 * - fail with -ENOSYS where AIX has the name only.
 * What AIX has not, and what is not named here, is as on Linux.
 */
#ifndef RDMA_AIX_H
#define RDMA_AIX_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include <rdma/rdma_aix_verbs.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int rdma_aix_fail_(int err)
{
    errno = err;
    return -err;
}

/** Turns -1 into those negative errnos that AIX returns. */
static inline int rdma_aix_result_(int ret)
{
    if (ret != -1)
        return ret;
    switch (errno) {
    case EINVAL:
    case EPROTONOSUPPORT:
    case ENOMEM:
    case ENODATA:
    case ENODEV:
        return -errno;
    default:
        return -1;
    }
}

/** @return 0, or -ENODATA if the program has closed the descriptor of the channel */
static inline int rdma_aix_open_(const struct rdma_event_channel *channel)
{
    if (channel && fcntl(channel->fd, F_GETFD) == -1 && errno == EBADF)
        return rdma_aix_fail_(ENODATA);
    return 0;
}

/** Whether there is an id whose channel can be used. @return 0, -EINVAL or -ENODATA */
static inline int rdma_aix_usable_(const struct rdma_cm_id *id)
{
    return id ? rdma_aix_open_(id->channel) : rdma_aix_fail_(EINVAL);
}

/* ---- librdmacm ---- */

static inline int rdma_aix_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
                                     void *context, enum rdma_port_space ps)
{
    if (!channel || !id)
        return rdma_aix_fail_(EINVAL);
    if (ps != RDMA_PS_TCP)
        return rdma_aix_fail_(EPROTONOSUPPORT);
    int ret = rdma_aix_open_(channel);
    return ret ? ret : rdma_aix_result_(rdma_create_id(channel, id, context, ps));
}

static inline int rdma_aix_destroy_id(struct rdma_cm_id *id)
{
    int ret = rdma_aix_usable_(id);
    return ret ? ret : rdma_aix_result_(rdma_destroy_id(id));
}

static inline int rdma_aix_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
    if (!id || !channel)
        return rdma_aix_fail_(EINVAL);
    int ret = rdma_aix_open_(channel);
    return ret ? ret : rdma_aix_result_(rdma_migrate_id(id, channel));
}

static inline int rdma_aix_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    int ret = rdma_aix_usable_(id);
    return ret ? ret : rdma_aix_result_(rdma_bind_addr(id, addr));
}

static inline int rdma_aix_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
                                        struct sockaddr *dst_addr, int timeout_ms)
{
    int ret = rdma_aix_usable_(id);
    return ret ? ret : rdma_aix_result_(rdma_resolve_addr(id, src_addr, dst_addr, timeout_ms));
}

static inline int rdma_aix_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
    int ret = rdma_aix_usable_(id);
    return ret ? ret : rdma_aix_result_(rdma_resolve_route(id, timeout_ms));
}

static inline int rdma_aix_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
                                     struct ibv_qp_init_attr *qp_init_attr)
{
    if (!pd)
        return rdma_aix_fail_(EINVAL);
    return rdma_aix_result_(rdma_create_qp(id, pd, qp_init_attr));
}

/** What connect and accept want of their arguments. @return 0 or a negative errno */
static inline int rdma_aix_conn_param_(const struct rdma_cm_id *id,
                                       const struct rdma_conn_param *conn_param)
{
    struct ibv_device_attr device;
    if (!id || !conn_param)
        return rdma_aix_fail_(EINVAL);
    if (id->ps != RDMA_PS_TCP)
        return rdma_aix_fail_(EPROTONOSUPPORT);
    if (!id->verbs || ibv_query_device(id->verbs, &device) ||
        conn_param->responder_resources > device.max_qp_rd_atom ||
        conn_param->initiator_depth > device.max_qp_init_rd_atom)
        return rdma_aix_fail_(EINVAL);
    return rdma_aix_usable_(id);
}

static inline int rdma_aix_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    int ret = rdma_aix_conn_param_(id, conn_param);
    return ret ? ret : rdma_aix_result_(rdma_connect(id, conn_param));
}

static inline int rdma_aix_listen(struct rdma_cm_id *id, int backlog)
{
    int ret = rdma_aix_usable_(id);
    return ret ? ret : rdma_aix_result_(rdma_listen(id, backlog));
}

static inline int rdma_aix_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    int ret = rdma_aix_conn_param_(id, conn_param);
    if (ret)
        return ret;
    if (!id->qp || !id->qp->context)
        return rdma_aix_fail_(EINVAL);
    return rdma_aix_result_(rdma_accept(id, conn_param));
}

static inline int rdma_aix_reject(struct rdma_cm_id *id, const void *private_data,
                                  uint8_t private_data_len)
{
    int ret = rdma_aix_usable_(id);
    return ret ? ret : rdma_aix_result_(rdma_reject(id, private_data, private_data_len));
}

static inline int rdma_aix_disconnect(struct rdma_cm_id *id)
{
    if (!id || !id->qp)
        return rdma_aix_fail_(EINVAL);
    int ret = rdma_aix_usable_(id);
    return ret ? ret : rdma_aix_result_(rdma_disconnect(id));
}

static inline int rdma_aix_get_cm_event(struct rdma_event_channel *channel,
                                        struct rdma_cm_event **event)
{
    if (!channel || !event)
        return rdma_aix_fail_(EINVAL);
    int ret = rdma_aix_open_(channel);
    return ret ? ret : rdma_aix_result_(rdma_get_cm_event(channel, event));
}

static inline int rdma_aix_ack_cm_event(struct rdma_cm_event *event)
{
    return rdma_aix_result_(rdma_ack_cm_event(event));
}

static inline struct sockaddr *rdma_aix_get_local_addr(struct rdma_cm_id *id)
{
    return id ? rdma_get_local_addr(id) : NULL;
}

static inline struct sockaddr *rdma_aix_get_peer_addr(struct rdma_cm_id *id)
{
    return id ? rdma_get_peer_addr(id) : NULL;
}

/* ---- librdmacm: names without a function ---- */

static inline int rdma_aix_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
    (void)id, (void)event;
    return rdma_aix_fail_(ENOSYS);
}

static inline int rdma_aix_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
                                      size_t optlen)
{
    (void)id, (void)level, (void)optname, (void)optval, (void)optlen;
    return rdma_aix_fail_(ENOSYS);
}

static inline int rdma_aix_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
                                          void *context)
{
    (void)id, (void)addr, (void)context;
    return rdma_aix_fail_(ENOSYS);
}

static inline int rdma_aix_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    (void)id, (void)addr;
    return rdma_aix_fail_(ENOSYS);
}

#define rdma_create_id       rdma_aix_create_id
#define rdma_destroy_id      rdma_aix_destroy_id
#define rdma_migrate_id      rdma_aix_migrate_id
#define rdma_bind_addr       rdma_aix_bind_addr
#define rdma_resolve_addr    rdma_aix_resolve_addr
#define rdma_resolve_route   rdma_aix_resolve_route
#define rdma_create_qp       rdma_aix_create_qp
#define rdma_connect         rdma_aix_connect
#define rdma_listen          rdma_aix_listen
#define rdma_accept          rdma_aix_accept
#define rdma_reject          rdma_aix_reject
#define rdma_disconnect      rdma_aix_disconnect
#define rdma_get_cm_event    rdma_aix_get_cm_event
#define rdma_ack_cm_event    rdma_aix_ack_cm_event
#define rdma_get_local_addr  rdma_aix_get_local_addr
#define rdma_get_peer_addr   rdma_aix_get_peer_addr
#define rdma_notify          rdma_aix_notify
#define rdma_set_option      rdma_aix_set_option
#define rdma_join_multicast  rdma_aix_join_multicast
#define rdma_leave_multicast rdma_aix_leave_multicast

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm for cm.c, whose own names are the same as its: a port is a struct rdma_cm_id of
 * librdmacm, and all of them are of one event channel. What may fail returns 0 or errno.
 */
#ifndef KVERBS_CM_PORT_H
#define KVERBS_CM_PORT_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <sys/socket.h>

/** The devices that librdmacm has open; NULL at the end. NULL: none. */
struct ibv_context **cm_port_devices(void);
void cm_port_devices_free(struct ibv_context **list);

struct cm_port_param {
    const void *private_data;
    uint8_t private_data_len;
    uint8_t responder_resources, initiator_depth;
    uint8_t flow_control, retry_count, rnr_retry_count;
    uint8_t srq;
    uint32_t qp_num;
};

struct cm_port_event {
    int event, status;
    void *owner;    /* of the id, or of the listener that it is for */
    void *new_port; /* of a connection request; NULL: none */
    struct cm_port_param param;
    void *verb; /* for cm_port_ack() */
};

/**
 * Opens the channel, unless it is open: before there is any port. The caller locks.
 * @return its descriptor, or a negative errno
 */
int cm_port_open(void);

/** The next event; EAGAIN: there is none. It is held until cm_port_ack(). */
int cm_port_next(struct cm_port_event *e);
void cm_port_ack(struct cm_port_event *e);

int cm_port_create(void **port, void *owner, int ps);
void cm_port_own(void *port, void *owner);
void cm_port_destroy(void *port); /* waits until its events are acknowledged */

int cm_port_bind(void *port, struct sockaddr *addr);
int cm_port_resolve_addr(void *port, struct sockaddr *src, struct sockaddr *dst, int timeout_ms);
int cm_port_resolve_route(void *port, int timeout_ms);
int cm_port_listen(void *port, int backlog);
int cm_port_connect(void *port, const struct cm_port_param *param);
int cm_port_accept(void *port, const struct cm_port_param *param);
int cm_port_reject(void *port, const void *private_data, uint8_t length);
int cm_port_disconnect(void *port);
int cm_port_notify(void *port, enum ibv_event_type event);

enum cm_port_option { CM_PORT_TOS, CM_PORT_REUSEADDR, CM_PORT_AFONLY };

int cm_port_set(void *port, enum cm_port_option option, int value);

/** Makes a QP with the id; @return NULL: errno */
struct ibv_qp *cm_port_create_qp(void *port, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
void cm_port_destroy_qp(void *port);
int cm_port_init_qp_attr(void *port, struct ibv_qp_attr *attr, int *mask);

/** What the id knows by now; NULL: nothing. */
struct ibv_context *cm_port_verbs(void *port);
uint8_t cm_port_number(void *port);
void cm_port_addresses(void *port, struct sockaddr_storage *src, struct sockaddr_storage *dst);

const char *cm_port_event_text(int event);

#endif

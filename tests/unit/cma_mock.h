/* SPDX-License-Identifier: BSD-2-Clause */
/* A transport and verbs that do nothing but remember, for the tests of librdmacm alone. */
#ifndef ANYWARP_TESTS_CMA_MOCK_H
#define ANYWARP_TESTS_CMA_MOCK_H

#include "cma/cma.h"

struct iw_cm {
    iw_cm_handler *handler;
    void *owner;
    struct sockaddr_storage local, peer;
    bool afonly, strangers;
    int backlog, disconnects;
    uint8_t tos;
    bool accepted, rejected;
    struct iw_cm_param param; /* of the last connect or accept */
    uint8_t private_data[256];
    struct sockaddr_storage dst;
};

/* What the mock does and has done. */
extern struct mock {
    bool device; /* there is one */
    int fail;    /* errno that the next iw_cm_ call, ibv_create_qp() or PD fails with */
    int cms, pds, qps, cqs, channels, srqs; /* that exist now */
    int max_depth;
    bool absent;                  /* the device's interface is */
    struct iw_cm_local locals[4]; /* of the host */
    int nlocals;                  /* or an error */
    bool cancel;                  /* the next PD is made by a thread that is being cancelled */
} mock;

void mock_reset(void);

/** The transport of an id. */
struct iw_cm *mock_cm(struct rdma_cm_id *id);

/** Lets the transport see a change of the host's interfaces, if it was asked to watch. */
void mock_host_changed(void);

/** Lets the transport tell the id something. */
void mock_event(struct rdma_cm_id *id, enum iw_cm_event_type type, int status);

/** As mock_event(), with private data and depths. */
void mock_event_with(struct rdma_cm_id *id, struct iw_cm_event *event, const char *private_data);

/** A peer asks for a connection. @return what the handler says */
int mock_request(struct rdma_cm_id *listener, const char *private_data);

#endif

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

struct iw_sidr {
    iw_sidr_handler *handler;
    void *owner;
    uint16_t ps;
    struct sockaddr_storage local, peer;
    bool afonly, listens, accepted, rejected;
    uint8_t tos;
    struct iw_sidr_param param; /* of the last question or answer */
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
    int attached;                 /* multicast groups of QPs */
    uint32_t qkey;                /* that the last QP was given */
    bool cancel;                  /* the next PD is made by a thread that is being cancelled */
} mock;

void mock_reset(void);

/** The transport of an id. */
struct iw_cm *mock_cm(struct rdma_cm_id *id);

/** The same of one for datagrams. */
struct iw_sidr *mock_sidr(struct rdma_cm_id *id);

/** The answer to the question of an id. @param private_data may be NULL */
void mock_answer(struct rdma_cm_id *id, const struct iw_cm_event *event, const char *private_data);

/** A peer asks a listener for datagrams. @return what the handler says */
int mock_question(struct rdma_cm_id *listener, const char *private_data);

/** Lets the transport see a change of the host's interfaces, if it was asked to watch. */
void mock_host_changed(void);

/** Lets the transport tell the id something. */
void mock_event(struct rdma_cm_id *id, enum iw_cm_event_type type, int status);

/** As mock_event(), with private data and depths. */
void mock_event_with(struct rdma_cm_id *id, struct iw_cm_event *event, const char *private_data);

/** A peer asks for a connection. @return what the handler says */
int mock_request(struct rdma_cm_id *listener, const char *private_data);

#endif

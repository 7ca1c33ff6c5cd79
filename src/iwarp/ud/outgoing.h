/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes out with one sendmmsg(): each message is a datagram, or a pack of consecutive ones for
 * the same QP of this host. All under the QP's tx.lock, and in a section (mem/quiesce.h).
 */
#ifndef ANYWARP_UD_OUTGOING_H
#define ANYWARP_UD_OUTGOING_H

#include "env/limits.h"
#include "qp/qp.h"
#include "ud/header.h"
#include "ud/pack.h"

#include <sys/socket.h>
#include <sys/un.h>

#define IW_UD_OUT_MESSAGES  16
#define IW_UD_OUT_DATAGRAMS 64
#define IW_UD_OUT_IOVS      (2 * IW_UD_OUT_DATAGRAMS + IW_MAX_SGE)
#define IW_UD_OUT_HEAD      (IW_UD_PACK_BEGIN + IW_UD_PACK_LENGTH + IW_UD_HEADER + IW_UD_GRH)
#define IW_UD_OUT_CONTROL   (CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)))

struct iw_ud_to {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_un local;
    } name;
    _Alignas(struct cmsghdr) uint8_t control[IW_UD_OUT_CONTROL];
};

struct iw_ud_outgoing {
    bool single; /* nothing is packed */
    unsigned messages, datagrams, iovs;
    size_t bytes;                    /* of the last message, as a pack */
    unsigned of[IW_UD_OUT_MESSAGES]; /* datagrams in each */
    struct mmsghdr msg[IW_UD_OUT_MESSAGES];
    struct iw_ud_to to[IW_UD_OUT_MESSAGES];
    uint8_t head[IW_UD_OUT_DATAGRAMS][IW_UD_OUT_HEAD];
    struct iovec iov[IW_UD_OUT_IOVS];
};

/** None so far; the large parts stay undefined. */
static inline void iw_ud_out_init(struct iw_ud_outgoing *o, bool single)
{
    o->single = single;
    o->messages = o->datagrams = o->iovs = 0;
    o->bytes = 0;
}

/** Whether another datagram fits, whatever it is. */
bool iw_ud_has_room(const struct iw_ud_outgoing *o);

/**
 * Adds the datagram of the work request at @p i, which follows the last one; needs room.
 * @return IW_OK, or what is wrong with its memory: then nothing was added
 */
enum iw_err iw_ud_add_locked(struct iw_qp *qp, uint32_t i, struct iw_ud_outgoing *o);

#endif

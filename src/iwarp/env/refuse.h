/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a call is refused, in words. Each refusal is one row: its errno and a sentence, which goes to
 * the log at level 2 behind the name of the call. What fails later, on the wire, is in
 * wire/error.h.
 */
#ifndef ANYWARP_ENV_REFUSE_H
#define ANYWARP_ENV_REFUSE_H

#include "env/export.h"
#include "env/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

/*
 * X(name, errno, sentence)
 *
 * tests/refuse provokes each. Out of memory and descriptors is what the errno says by itself.
 */
#define IW_REFUSALS(X)                                                                             \
    /* any call */                                                                                 \
    X(ARGUMENT, EINVAL, "an argument is NULL")                                                     \
    X(OFFERED, EOPNOTSUPP, "the device does not offer it")                                         \
    X(ATTRIBUTE, EOPNOTSUPP, "the device does not offer all of %s")                                \
    X(ABSENT, ENOSYS, "the device has neither XRC nor multicast")                                  \
    X(VALUE, EINVAL, "not possible: %s")                                                           \
    X(IN_USE, EBUSY, "%u %s use it")                                                               \
    /* posting */                                                                                  \
    X(NO_SGES, EINVAL, "%d SGEs, and sg_list is NULL")                                             \
    /* posting to a send queue */                                                                  \
    X(SEND_STATE, EINVAL, "the QP is in %s: it sends in RTS only, when it is connected")           \
    X(OPCODE, EINVAL, "the device does not offer opcode %d")                                       \
    X(EXTENSION, EOPNOTSUPP,                                                                       \
      "Send with Immediate is no part of iWARP: the peer is not anywarp, or not known yet")        \
    X(FLAGS, EINVAL, "send_flags %#x are not known")                                               \
    X(SEND_SGES, EINVAL, "%d SGEs, the QP has %u (max_send_sge)")                                  \
    X(SEND_LENGTH, EINVAL, "the message is longer than 2^32 - 1 bytes")                            \
    X(ATOMIC_LENGTH, EINVAL, "the answer of an atomic has 8 bytes, the SGEs have %llu")            \
    X(INLINE_READ, EINVAL, "IBV_SEND_INLINE with opcode %d, which sends no data")                  \
    X(INLINE_LENGTH, EINVAL, "%llu inline bytes, the QP has %u (max_inline_data)")                 \
    X(SEND_FULL, ENOMEM, "the send queue is full: %u posted, %u of them completed and not polled") \
    X(NO_SENDS, ENOMEM, "the QP has no send queue: max_send_wr was 0")                             \
    X(NO_HANDLE, EINVAL, "a datagram needs an address handle of the QP's protection domain")       \
    X(DATAGRAM_LENGTH, EINVAL, "a datagram of %llu bytes, at most %u are possible")                \
    X(NOT_ASKED, EOPNOTSUPP, "opcode %d was not in send_ops_flags when the QP was created")        \
    X(NO_WORK, EINVAL, "data is set, but no work request was begun")                               \
    /* posting receives */                                                                         \
    X(RECV_STATE, EINVAL, "the QP is in RESET: it takes receives from INIT on")                    \
    X(RECV_SHARED, EINVAL, "the QP receives by its SRQ: ibv_post_srq_recv()")                      \
    X(RECV_SGES, EINVAL, "%d SGEs, the receive queue has %u (max_recv_sge, max_sge)")              \
    X(RECV_FULL, ENOMEM,                                                                           \
      "the receive queue is full: %u posted, %u of them completed and not polled")                 \
    X(NO_RECVS, ENOMEM, "the QP has no receive queue: max_recv_wr was 0")                          \
    /* memory */                                                                                   \
    X(ACCESS_FLAGS, EINVAL, "access %#x has flags that are not known")                             \
    X(ACCESS_LOCAL, EINVAL, "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE, too")                \
    X(ON_DEMAND, EOPNOTSUPP, "the device does not offer IBV_ACCESS_ON_DEMAND")                     \
    X(EMPTY, EINVAL, "the region has no bytes")                                                    \
    X(WRAPS, EINVAL, "address %#llx and length %zu go past 2^64")                                  \
    X(UNMAPPED, EFAULT, "%zu bytes at %#llx: not all of it is mapped, or %s")                      \
    X(IOVA, EINVAL, "address and iova differ in their place in the page")                          \
    X(REREG_FLAGS, EINVAL, "flags %#x are not known, or none, or say nothing of what is given")    \
    X(OTHER_CONTEXT, EINVAL, "%s is of another context")                                           \
    X(HAS_WINDOWS, EBUSY, "a memory window is bound to it")                                        \
    X(WINDOW_TYPE, EINVAL, "there is no memory window of type %d")                                 \
    X(BIND_TYPE, EINVAL, "ibv_post_send() binds windows of type 2, ibv_bind_mw() those of type 1") \
    X(BIND_KEY, EINVAL, "a new rkey may differ in its last 8 bits only: ibv_inc_rkey()")           \
    X(BIND_RANGE, EINVAL, "there is no region to bind to, or no length")                           \
    X(BIND_RIGHTS, EINVAL, "mw_access_flags %#x: a window gives remote rights only")               \
    X(BIND_PD, EPERM, "QP, window and region are not of one protection domain")                    \
    X(PD_USED, EBUSY, "%u objects are in the protection domain")                                   \
    /* queues */                                                                                   \
    X(CQ_SIZE, EINVAL, "%d entries, 1 to %u are possible")                                         \
    X(CQ_VECTOR, EINVAL, "there is no completion vector %d")                                       \
    X(CQ_SHRINK, EINVAL, "%u completions wait, more than %u entries can hold")                     \
    X(CQ_OVERRUN, EINVAL, "the completion queue has overrun")                                      \
    X(CQ_USED, EBUSY, "%u queues of QPs complete there")                                           \
    X(CHANNEL_USED, EBUSY, "%d completion queues are on the channel")                              \
    X(SRQ_USED, EBUSY, "%u QPs receive by it")                                                     \
    X(SRQ_SIZE, EINVAL, "max_wr %u (1 to %u), max_sge %u (to %u), srq_limit %u (to max_wr)")       \
    X(SRQ_MODIFY, EOPNOTSUPP, "of an SRQ only the limit can be changed")                           \
    X(SRQ_LIMIT, EINVAL, "a limit of %u, the SRQ has %u")                                          \
    X(COUNTED, EBUSY, "the QP counts such work with another counter already")                      \
    X(QP_TYPE, EOPNOTSUPP,                                                                         \
      "type %d: there are IBV_QPT_RC, IBV_QPT_UD and, connected by number alone, IBV_QPT_UC")      \
    X(QP_SIZE, EINVAL, "%s is %u, at most %u is possible")                                         \
    X(QP_CQ, EINVAL, "a %s queue with entries, and no completion queue for it")                    \
    X(QP_OPS, EOPNOTSUPP, "comp_mask %#x or send_ops_flags ask for what the device has not")       \
    X(QP_PD, EINVAL, "there is no protection domain")                                              \
    X(ATTR_MASK, EOPNOTSUPP, "attr_mask %#x: not all of it is known")                              \
    X(ATTR_VALUE, EINVAL, "an attribute of mask %#x has a value that is not possible")             \
    X(TRANSITION, EINVAL, "from %s to %s with mask %#x is no transition of a QP")                  \
    X(NO_CONNECTION, EINVAL,                                                                       \
      "a QP comes to RTS by rdma_connect() or rdma_accept(), or from RTR with a peer's number")    \
    X(NO_GID, EINVAL, "the address has no GID (ah_attr.is_global): programs ask for one, as -g 1") \
    X(NO_NUMBER, EINVAL,                                                                           \
      "the QP has no number to be dialled by: rdma_create_qp() made it, or no port was free")      \
    X(GID_INDEX, EINVAL, "there is no GID %u; \"anywarp devices\" lists them")                     \
    X(GROUP, EINVAL, "only a QP of type UD joins a group, whose GID is a multicast address")       \
    X(NO_GROUP, EINVAL, "the QP has not joined that group")                                        \
    X(GID_KIND, EHOSTUNREACH, "the two GIDs are addresses of different kinds")                     \
    /* ids of librdmacm */                                                                         \
    X(STATE, EINVAL, "the id is in state %s%s")                                                    \
    X(NO_QP, EINVAL, "the id has no queue pair: rdma_create_qp() first")                           \
    X(QP_TAKEN, EINVAL, "the queue pair is connected, was connected, or is in error")              \
    X(HAS_QP, EINVAL, "the id has a queue pair already")                                           \
    X(OTHER_KIND, ENODEV,                                                                          \
      "a connection request of %s device, and no such device is meant here (ANYWARP_DEVICES)")     \
    X(NO_DEVICE, EINVAL,                                                                           \
      "the id has no device yet: bind or resolve first, and take the event of that")               \
    X(ID_CQ, EINVAL, "the id has completion queues already, and others are given")                 \
    X(PRIVATE_DATA, EINVAL, "%zu bytes of private data, %u are possible")                          \
    X(DEPTH, EINVAL, "%s of %u, the device has %d")                                                \
    X(SERVICE, EOPNOTSUPP, "the id's port space has no connections")                               \
    X(FAMILY, EAFNOSUPPORT, "address family %d")                                                   \
    X(SCOPE, EINVAL, "a link-local address needs its interface (sin6_scope_id)")                   \
    X(NO_ROUTE, ENETUNREACH, "there is no route to %s (ip route get)")                             \
    X(PORT_TAKEN, EADDRINUSE, "port %u is taken by another id")                                    \
    X(PORT_IN_USE, EADDRINUSE,                                                                     \
      "port %u is in use: ids share the ports of an address with TCP and UDP")                     \
    X(NOT_LOCAL, EADDRNOTAVAIL, "%s is no address of this host (ip address)")                      \
    X(PORT_SPACE, EINVAL, "there is no port space %#x")                                            \
    X(OPTION, ENOSYS, "there is no option %d of level %d")                                         \
    X(OPTION_VALUE, EINVAL, "%zu bytes are not the value of the option")                           \
    X(LOOKUP, EBUSY, "a look-up of the id is under way")                                           \
    X(NOT_SYNCHRONOUS, EINVAL, "the id has an event channel: rdma_get_cm_event() tells of it")

enum iw_refusal {
#define X(name, err, text) IW_REFUSED_##name,
    IW_REFUSALS(X)
#undef X
        IW_REFUSED_COUNT,
};

/* So that the compiler compares each sentence with what it is given. */
#define X(name, err, text)                                                                         \
    static const char iw_refused_text_##name[] __attribute__((unused)) = text;
IW_REFUSALS(X)
#undef X

/** Which refusals an object has told of, so that a program that tries again and again fills no log.
 */
struct iw_refused {
    _Atomic uint64_t told[(IW_REFUSED_COUNT + 63) / 64];
};

/**
 * Says that a call is refused, and why: iw_refuse(CALL, NAME, ...), with what the sentence wants.
 * @param call  as the program knows it, "ibv_post_send"
 * @return the errno of the row, positive
 */
#define iw_refuse(call, name, ...)                                                                 \
    iw_cm_refuse(NULL, call, IW_REFUSED_##name, iw_refused_text_##name, ##__VA_ARGS__)

/** The same, once for each object: for what programs do over and over. */
#define iw_refuse_once(refused, call, name, ...)                                                   \
    iw_cm_refuse(refused, call, IW_REFUSED_##name, iw_refused_text_##name, ##__VA_ARGS__)

/** Use iw_refuse() or iw_refuse_once(). @param refused may be NULL */
IW_CM_EXPORT int iw_cm_refuse(struct iw_refused *refused, const char *call, enum iw_refusal why,
                              const char *text, ...) __attribute__((cold, format(printf, 4, 5)));

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every reason for which a stream or a work request can fail, in one table: what the Terminate
 * message says of it (RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581
 * section 8), what the program sees, and the English sentence for the log.
 */
#ifndef ANYWARP_WIRE_ERROR_H
#define ANYWARP_WIRE_ERROR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/** Terminate layers. */
enum term_layer { TERM_RDMAP = 0, TERM_DDP = 1, TERM_MPA = 2 };

/*
 * X(name, layer, etype, code, status, event, text)
 *
 * layer, etype, code: of the Terminate that reports it.
 * status: of the local work request that ran into it (a receive, or the read whose response was
 *         bad), or of the work request that a peer's Terminate with this code names.
 * event:  the asynchronous event on the QP of the side that found it; NONE where the CM's
 *         DISCONNECTED says all.
 */
#define IW_ERRORS(X)                                                                               \
    X(LLP_CLOSED, 2, 0, 0x01, WR_FLUSH_ERR, NONE, "TCP connection closed")                         \
    X(LLP_LOST, 2, 0, 0x01, WR_FLUSH_ERR, NONE, "TCP connection lost")                             \
    X(CRC, 2, 0, 0x02, GENERAL_ERR, QP_FATAL, "received CRC does not match")                       \
    X(FRAMING, 2, 0, 0x03, GENERAL_ERR, QP_FATAL, "FPDU length and headers disagree")              \
    X(START_FRAME, 2, 0, 0x04, GENERAL_ERR, QP_FATAL, "invalid MPA request or reply frame")        \
    X(MPA_LOCAL, 2, 0, 0x05, GENERAL_ERR, QP_FATAL, "local failure during MPA set-up")             \
    X(IRD_SHORT, 2, 0, 0x06, GENERAL_ERR, QP_FATAL, "insufficient IRD resources")                  \
    X(NO_RTR, 2, 0, 0x07, GENERAL_ERR, QP_FATAL, "no matching RTR option")                         \
    X(TAGGED_STAG, 1, 1, 0x00, REM_ACCESS_ERR, QP_ACCESS_ERR, "tagged message to an invalid STag") \
    X(TAGGED_BOUNDS, 1, 1, 0x01, REM_ACCESS_ERR, QP_ACCESS_ERR,                                    \
      "tagged message outside the bounds of its STag")                                             \
    X(TAGGED_STREAM, 1, 1, 0x02, REM_ACCESS_ERR, QP_ACCESS_ERR,                                    \
      "tagged message to an STag of another protection domain")                                    \
    X(TAGGED_WRAP, 1, 1, 0x03, REM_ACCESS_ERR, QP_ACCESS_ERR, "tagged offset wraps past 2^64")     \
    X(TAGGED_VERSION, 1, 1, 0x04, GENERAL_ERR, QP_FATAL,                                           \
      "DDP version of a tagged segment is not 1")                                                  \
    X(TAGGED_ACCESS, 1, 1, 0x00, REM_ACCESS_ERR, QP_ACCESS_ERR,                                    \
      "tagged message to an STag without remote write access")                                     \
    X(UNTAGGED_QN, 1, 2, 0x01, REM_INV_REQ_ERR, QP_FATAL, "invalid DDP queue number")              \
    X(UNTAGGED_NO_BUFFER, 1, 2, 0x02, REM_OP_ERR, QP_FATAL, "no buffer for an untagged message")   \
    X(UNTAGGED_MSN, 1, 2, 0x03, REM_INV_REQ_ERR, QP_FATAL, "message sequence number out of range") \
    X(UNTAGGED_MO, 1, 2, 0x04, REM_INV_REQ_ERR, QP_FATAL, "invalid message offset")                \
    X(UNTAGGED_TOO_LONG, 1, 2, 0x05, LOC_LEN_ERR, QP_FATAL,                                        \
      "untagged message longer than its receive buffer")                                           \
    X(UNTAGGED_VERSION, 1, 2, 0x06, GENERAL_ERR, QP_FATAL,                                         \
      "DDP version of an untagged segment is not 1")                                               \
    X(DDP_LOCAL, 1, 0, 0x00, GENERAL_ERR, QP_FATAL, "local catastrophic error in DDP")             \
    X(READ_STAG, 0, 1, 0x00, REM_ACCESS_ERR, QP_ACCESS_ERR, "read or atomic from an invalid STag") \
    X(READ_BOUNDS, 0, 1, 0x01, REM_ACCESS_ERR, QP_ACCESS_ERR,                                      \
      "read or atomic outside the bounds of its STag")                                             \
    X(READ_ACCESS, 0, 1, 0x02, REM_ACCESS_ERR, QP_ACCESS_ERR,                                      \
      "read or atomic on an STag without the access right")                                        \
    X(READ_STREAM, 0, 1, 0x03, REM_ACCESS_ERR, QP_ACCESS_ERR,                                      \
      "read or atomic from an STag of another protection domain")                                  \
    X(READ_WRAP, 0, 1, 0x04, REM_ACCESS_ERR, QP_ACCESS_ERR,                                        \
      "offset of a read or atomic wraps past 2^64")                                                \
    X(INVALIDATE_STREAM, 0, 1, 0x09, REM_INV_REQ_ERR, QP_ACCESS_ERR,                               \
      "STag of another stream cannot be invalidated")                                              \
    X(PROTECTION, 0, 1, 0xff, REM_ACCESS_ERR, QP_ACCESS_ERR,                                       \
      "unspecified remote protection error")                                                       \
    X(RDMAP_VERSION, 0, 2, 0x05, REM_INV_REQ_ERR, QP_FATAL, "RDMAP version is not 1")              \
    X(OPCODE, 0, 2, 0x06, REM_INV_REQ_ERR, QP_FATAL, "unexpected RDMAP opcode")                    \
    X(STREAM_OP, 0, 2, 0x07, REM_OP_ERR, QP_FATAL, "operation failed at the remote side")          \
    X(IRD_EXCEEDED, 0, 2, 0x07, REM_INV_REQ_ERR, QP_FATAL,                                         \
      "more reads and atomics outstanding than the agreed IRD")                                    \
    X(ATOMIC_ALIGN, 0, 2, 0x07, REM_INV_REQ_ERR, QP_ACCESS_ERR, "atomic on an unaligned address")  \
    X(GLOBAL_OP, 0, 2, 0x08, REM_OP_ERR, QP_FATAL, "remote RNIC failed")                           \
    X(INVALIDATE, 0, 2, 0x09, REM_INV_REQ_ERR, QP_ACCESS_ERR, "STag cannot be invalidated")        \
    X(OPERATION, 0, 2, 0xff, REM_OP_ERR, QP_FATAL, "unspecified remote operation error")           \
    X(RDMAP_LOCAL, 0, 0, 0x00, WR_FLUSH_ERR, NONE, "QP moved to the error state")                  \
    X(RESPONSE_STAG, 1, 1, 0x00, BAD_RESP_ERR, QP_ACCESS_ERR,                                      \
      "read response does not match the oldest outstanding read")                                  \
    X(RESPONSE_BOUNDS, 1, 1, 0x01, BAD_RESP_ERR, QP_ACCESS_ERR,                                    \
      "read response outside its sink buffer or of the wrong length")                              \
    X(RESPONSE_ATOMIC, 1, 2, 0x03, BAD_RESP_ERR, QP_FATAL,                                         \
      "atomic response does not match the oldest outstanding atomic")                              \
    X(LOCAL_LENGTH, 0, 0, 0x00, LOC_LEN_ERR, QP_REQ_ERR, "message longer than 2^32 - 1 bytes")     \
    X(LOCAL_PROT, 0, 0, 0x00, LOC_PROT_ERR, QP_REQ_ERR,                                            \
      "scatter/gather entry outside its memory region, with the wrong key, rights or PD")          \
    X(LOCAL_SINK, 0, 0, 0x00, LOC_PROT_ERR, QP_ACCESS_ERR,                                         \
      "receive buffer outside its memory region, with the wrong key, rights or PD")                \
    X(LOCAL_OP, 0, 0, 0x00, LOC_QP_OP_ERR, QP_REQ_ERR, "work request cannot be executed")          \
    X(CQ_OVERRUN, 0, 0, 0x00, WR_FLUSH_ERR, QP_FATAL, "completion queue overrun")                  \
    X(LOCAL_MW_BIND, 0, 0, 0x00, MW_BIND_ERR, QP_REQ_ERR, "memory window cannot be bound")         \
    X(PEER_TERMINATE, 0, 0, 0x00, WR_FLUSH_ERR, QP_FATAL, "peer sent a Terminate message")         \
    X(TAGGED_GONE, 1, 1, 0x01, REM_ACCESS_ERR, QP_ACCESS_ERR,                                      \
      "tagged message to registered memory that was unmapped or protected")                        \
    X(READ_GONE, 0, 1, 0x01, REM_ACCESS_ERR, QP_ACCESS_ERR,                                        \
      "read or atomic on registered memory that was unmapped or protected")                        \
    X(LOCAL_GONE, 0, 0, 0x00, LOC_PROT_ERR, QP_ACCESS_ERR,                                         \
      "scatter/gather entry in registered memory that was unmapped or protected")                  \
    X(DATAGRAM_LENGTH, 0, 0, 0x00, LOC_LEN_ERR, NONE, "datagram longer than its receive buffer")

enum iw_err {
    IW_OK = 0,
#define X(name, ...) IW_ERR_##name,
    IW_ERRORS(X)
#undef X
        IW_ERR_COUNT,
};

enum iw_event {
    IW_EVENT_NONE = -1,
    IW_EVENT_QP_FATAL = IBV_EVENT_QP_FATAL,
    IW_EVENT_QP_REQ_ERR = IBV_EVENT_QP_REQ_ERR,
    IW_EVENT_QP_ACCESS_ERR = IBV_EVENT_QP_ACCESS_ERR,
};

struct iw_err_info {
    const char *name;
    uint8_t layer, etype, code;
    enum ibv_wc_status status;
    enum iw_event event;
    const char *text;
};

/** The row of @p err, which must be a member of the enum; IW_OK has one that says success. */
const struct iw_err_info *iw_err_info(enum iw_err err);

/**
 * The first row with these Terminate codes.
 * @return IW_ERR_PEER_TERMINATE if no row has them.
 */
enum iw_err iw_err_from_terminate(uint8_t layer, uint8_t etype, uint8_t code);

/**
 * Which terminated headers a Terminate about @p err carries (RFC 5040 figure 10).
 * @param ddp    [out] DDP segment length and header
 * @param rdmap  [out] RDMAP header, present only for Read Requests
 */
void iw_err_headers(enum iw_err err, bool *ddp, bool *rdmap);

#endif

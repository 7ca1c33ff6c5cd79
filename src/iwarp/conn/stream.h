/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A byte stream under an iWARP stream: TCP, or memory for tests. No function blocks. Calls on one
 * stream are serialised by its owner, except that send and recv may run at the same time.
 */
#ifndef ANYWARP_CONN_STREAM_H
#define ANYWARP_CONN_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct iwc_stream;

struct iwc_stream_ops {
    /** @return bytes received (> 0), 0 at the peer's FIN, -EAGAIN, or another negative errno. */
    ssize_t (*recv)(struct iwc_stream *s, void *buf, size_t len);
    /** As recv, into @p n > 1 pieces one after the other; -EFAULT if one of them cannot be written.
     * NULL: what comes in must be seen whole, in one piece. */
    ssize_t (*recvv)(struct iwc_stream *s, const struct iovec *iov, unsigned n);
    /** @return bytes taken (> 0), -EAGAIN if none could be, or another negative errno. */
    ssize_t (*send)(struct iwc_stream *s, const struct iovec *iov, unsigned n);
    /** Sends FIN behind what was sent; receiving goes on. */
    void (*shutdown)(struct iwc_stream *s);
    /** Ends the stream at once; with @p reset the peer sees RST where the stream has that. */
    void (*close)(struct iwc_stream *s, int reset);
    /** Why the stream is dead, a negative errno; 0 if it is not, or nobody knows. Says it once. */
    int (*error)(struct iwc_stream *s);
    /** Effective maximum segment size now, in bytes. */
    uint32_t (*emss)(struct iwc_stream *s);
};

struct iwc_stream {
    const struct iwc_stream_ops *ops;
    uint32_t read_ahead; /* bytes to receive with those that are wanted, as calls are dear; or 0 */
    uint32_t read_first; /* bytes to receive where it is not known what comes, as copies are dear;
                            or 0: as many as there is room for */
    void *tap;           /* of whoever put other operations in place of its own; NULL: nobody */
    void *faults;        /* of faults/stream.c; NULL: none */
    void *record;        /* of observe/record_stream.c; NULL: none */
};

#endif

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
    void *tap; /* of whoever put other operations in place of its own; NULL: nobody */
};

/** TCP over a non-blocking descriptor that the stream owns from here on. */
struct iwc_stream_tcp {
    struct iwc_stream base;
    int fd;
};

/** Sets TCP_NODELAY. @p fd is closed by the stream's close. */
void iwc_stream_tcp_init(struct iwc_stream_tcp *s, int fd);

/**
 * Two memory streams joined end to end, for tests: single-threaded, deterministic. Each direction
 * delivers at most @p chunk bytes a recv, takes at most @p chunk bytes a send and holds at most
 * @p window bytes.
 */
struct iwc_stream_mem;
/** @return 0 or -ENOMEM */
int iwc_stream_mem_pair(struct iwc_stream_mem *pair[2], size_t chunk, size_t window);
void iwc_stream_mem_free(struct iwc_stream_mem *pair[2]);
struct iwc_stream *iwc_stream_mem_stream(struct iwc_stream_mem *s);
/** Changes the chunk of what @p s sends: a test that splits at byte n sets n, then the rest. */
void iwc_stream_mem_chunk(struct iwc_stream_mem *s, size_t chunk);
/**
 * Flips the bits of @p mask in the byte at stream offset @p at of what @p s sends; offsets count
 * from the start of the stream, bytes already sent stay as they are. Mask 0 ends it.
 */
void iwc_stream_mem_corrupt(struct iwc_stream_mem *s, uint64_t at, uint8_t mask);

#endif

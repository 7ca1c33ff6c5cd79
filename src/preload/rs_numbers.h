/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which numbers of the program stand for rsockets. Each such number is an ordinary TCP socket that
 * is not connected: it keeps flags and options, is duplicated and closed as any descriptor, and
 * becomes the connection itself if the peer turns out to speak plain TCP. From then on no number
 * stands for the rsocket any more.
 */
#ifndef ANYWARP_PRELOAD_RS_NUMBERS_H
#define ANYWARP_PRELOAD_RS_NUMBERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define RS_NUMBERS 65536

enum pre_state {
    PRE_NEW,
    PRE_LISTENING,
    PRE_CONNECTING,
    PRE_CONNECTED,
    PRE_FAILED /* to connect, by RDMA and by TCP */
};

struct pre_socket {
    atomic_uint refs; /* numbers that stand for it, and calls that use it */
    int rs;           /* the rsocket; -1: none any more */
    int domain;
    atomic_int state;            /* enum pre_state */
    atomic_bool duplicated;      /* at some time */
    atomic_int error;            /* of PRE_FAILED, told once by SO_ERROR */
    atomic_int recv_ms, send_ms; /* SO_RCVTIMEO, SO_SNDTIMEO; 0: none */
    pthread_mutex_t lock;        /* one thread sees how connecting ended */
    struct sockaddr_storage own, peer;
    socklen_t own_len, peer_len; /* own_len 0: the program did not bind */
    uint64_t until_ms;           /* PRE_CONNECTING: then the peer is taken to speak plain TCP */
    struct pre_socket *free;
};

/**
 * Between the two this thread is not cancelled, at whatever point of the call: it would leave locks
 * and references behind. A call that waits ends then, and the thread with the last pre_unshield().
 * Both keep errno.
 */
void pre_shield(void);
void pre_unshield(void);

/* Who has a socket by one of these, until pre_put(), is shielded. */

/** The socket that a number stands for, to be given back by pre_put(); NULL: none. */
struct pre_socket *pre_get(int fd);
/** Keeps errno. The last one closes the rsocket. */
void pre_put(struct pre_socket *s);
/** A socket for an rsocket, with one reference. @return NULL and errno */
struct pre_socket *pre_new(int rs, int domain, enum pre_state state);
/** From now on @p fd stands for @p s, or with NULL for nothing of ours. */
void pre_set(int fd, struct pre_socket *s);
/** A number other than @p fd that stands for @p s; -1: none. */
int pre_another(const struct pre_socket *s, int fd);
/** Calls @p each for the numbers that stand for @p s, which stand for nothing afterwards. */
void pre_release(struct pre_socket *s, void (*each)(int fd));
/** Whether any number has ever stood for an rsocket. */
bool pre_any(void);
/** Not in a child of vfork(), which has our memory and descriptors of its own. */
bool pre_own_process(void);

#endif

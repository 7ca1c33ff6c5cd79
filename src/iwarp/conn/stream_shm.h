/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A byte stream that begins on TCP and goes on in rings, one each way, that the peer maps, too. TCP
 * stays as its lifeline: what it tells of the end comes behind what was published before.
 *
 * Each direction switches on its own: the sender says so in band, as the last that it gives to TCP.
 * Until then, and if that is never, all goes over TCP, and nothing is different.
 *
 * With rings the peer that is gone is told of by recv, behind what it sent; until then a send to it
 * is one for which there is no room.
 *
 * A bell, a stream socket to the peer, is rung for whoever sleeps; ring.h says when. Epoll tells of
 * each ring (EPOLLET): what was said is read now and then, so that there is room for more. Bytes
 * are copied out of the ring before anybody judges them.
 */
#ifndef ANYWARP_CONN_STREAM_SHM_H
#define ANYWARP_CONN_STREAM_SHM_H

#include "conn/ring.h"
#include "conn/stream.h"

/* What the stream asks whom it belongs to. No function takes a lock that a send or recv holds. */
struct iwc_shm_user {
    /** As in struct iwc_tls_user. */
    bool (*gather)(uint8_t *to, size_t skip, size_t len, const struct iovec *iov, unsigned n);
    /** Copies into memory of the program. @return false if it is not there any more */
    bool (*place)(uint8_t *to, const uint8_t *from, size_t len);
    /** Something is in the ring, and nobody is rung for it: have somebody look, soon. */
    void (*again)(void *arg);
};

/** What both ends have mapped: a ring in and a ring out. */
struct iwc_shm_rings {
    struct iwc_ring_ctl *in_ctl, *out_ctl;
    uint8_t *in, *out; /* size bytes, twice */
    size_t size;
    int bell; /* the owner's, as the memory is; both stay until iwc_stream_shm_kill() */
};

struct iwc_stream_shm {
    struct iwc_stream base;
    struct iwc_stream *under;
    const struct iwc_shm_user *user;
    void *arg;
    struct iwc_ring in, out;
    int bell;
    atomic_bool attached; /* the rings are there */
    atomic_bool dead;     /* nothing goes through any more */
    atomic_bool counts;   /* what goes over TCP */
    atomic_bool due;      /* so much that rings pay; or the ring out is used again */
    atomic_uint parts;    /* sends and recvs over TCP so far */
    atomic_ulong bytes;   /* that they moved */
    atomic_bool look;     /* TCP may have something: its end */
    atomic_bool told_end; /* by a recv */
    atomic_bool asked;    /* the peer rings when there is room */
    atomic_bool rang;     /* the peer has, once at least */
    atomic_bool awaits;   /* that it rings */
    atomic_uint unheard;  /* so often the peer may have rung, at most */
    bool lean;            /* it is told of when the ring out is used */
    uint64_t rested;      /* what was sent through it at the last iwc_stream_shm_rest() */
    uint64_t left;        /* bytes to give to TCP, then the ring is next; UINT64_MAX: not yet */
    uint64_t received;    /* bytes of the stream that came by TCP */
    atomic_bool from_ring;
    bool ended; /* TCP has told of the end */
    int end;    /* 0: FIN, or a negative errno */
};

/** Over @p under, which outlives it. Nothing to undo. */
void iwc_stream_shm_init(struct iwc_stream_shm *s, struct iwc_stream *under,
                         const struct iwc_shm_user *user, void *arg);

/**
 * FPDUs follow, of which @p early bytes were received already.
 * @param counts  whether rings are ever due
 */
void iwc_stream_shm_begin(struct iwc_stream_shm *s, size_t early, bool counts);

/** Whether so much has gone over TCP that rings pay, or the ring out is used for the first time, or
 * again behind iwc_stream_shm_rest(). Once. Any thread. */
bool iwc_stream_shm_due(struct iwc_stream_shm *s);

/** The rings are there. Once. */
void iwc_stream_shm_attach(struct iwc_stream_shm *s, const struct iwc_shm_rings *rings);

/** Whether they are. Any thread. */
static inline bool iwc_stream_shm_attached(struct iwc_stream_shm *s)
{
    return atomic_load(&s->attached);
}

/** What is sent behind the next @p bytes goes into the ring. As send. */
void iwc_stream_shm_switch_out(struct iwc_stream_shm *s, uint64_t bytes);

/**
 * What is received behind byte @p pos of the stream comes from the ring. As recv.
 * @return false if there are no rings, or more has come by TCP
 */
bool iwc_stream_shm_switch_in(struct iwc_stream_shm *s, uint64_t pos);

/** Whether that is so: what is received comes from the ring. Any thread. */
static inline bool iwc_stream_shm_receives(const struct iwc_stream_shm *s)
{
    return atomic_load_explicit(&s->from_ring, memory_order_acquire);
}

/** Whether what is sent goes into the ring. As send. */
static inline bool iwc_stream_shm_sends(const struct iwc_stream_shm *s)
{
    return !s->left;
}

/** The descriptor of TCP is ready: recv looks there, too. Any thread. */
void iwc_stream_shm_look(struct iwc_stream_shm *s);

/**
 * Whether recv would find nothing but what the descriptor of TCP tells of, and nobody waits for
 * room, as far as one can see from outside: what came in a moment ago may be seen at the next look.
 * Any thread, until iwc_stream_shm_kill().
 */
bool iwc_stream_shm_idle(const struct iwc_stream_shm *s);

/** Asks to be rung for when something comes in; if it is there already, again(). Any thread. */
void iwc_stream_shm_arm(struct iwc_stream_shm *s);

/** What tells of room. */
enum iwc_shm_room {
    IWC_SHM_TCP,  /* the descriptor of TCP does */
    IWC_SHM_BELL, /* the peer rings */
    IWC_SHM_NOW,  /* there is room */
};

/** Behind a send that found none. As send. */
enum iwc_shm_room iwc_stream_shm_want(struct iwc_stream_shm *s);

/** Whether there was none when that was last asked, and so somebody waits. */
bool iwc_stream_shm_asked(struct iwc_stream_shm *s);

/**
 * If nothing went into the ring out since the last call, its pages go back to the system, unless
 * the peer has not used all: nobody looks at what is not published. As send.
 * @return false if nothing did: iwc_stream_shm_due() tells when it is used again
 */
bool iwc_stream_shm_rest(struct iwc_stream_shm *s);

/** Rings the peer's bell, though nothing was published. */
void iwc_stream_shm_ring(const struct iwc_stream_shm *s);

/**
 * The bell was rung. What was rung for before it is read is not told of again: the caller looks at
 * both rings afterwards.
 * @param all  whatever it has said is read, else only if that may be much, is the first, or was
 *             not asked for
 * @return false if it will never ring again
 */
bool iwc_stream_shm_hear(struct iwc_stream_shm *s, bool all);

/** The rings are not touched any more, by anybody. The caller has made sure that nobody is. */
void iwc_stream_shm_kill(struct iwc_stream_shm *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hand-over: pollers, waiters and the engine's thread run a shard's deferred work and its
 * socket for each other, and nothing may be left lying when one of them stops. Names are those of
 * src/iwarp/engine; one step here is one access there that others see, and those are sequentially
 * consistent there, too.
 *
 * Time is the thread's timer of looks: OFF, or it fires at some time; what is FAR is behind what is
 * NEAR. What is counted there is yes or no here, and may be either where a threshold decides. Each
 * thread of the program does some things, in any order, and stops. Not modelled: the timers of
 * others, fork(), hot sources.
 *
 * tests/model/run has the cases: which threads there are, and how many shards. With one of
 * MISTAKE_* the model is wrong, and Spin has to find that.
 */
#ifndef POLLERS
#define POLLERS 0 /* threads that post and poll, arm, and may stop at any time */
#endif
#ifndef POSTERS
#define POSTERS 0 /* threads that only post */
#endif
#ifndef WAITERS
#define WAITERS 0 /* threads that wait for events */
#endif
#ifndef SHARDS
#define SHARDS 1
#endif
#ifndef ACTS
#define ACTS 3 /* of each other thread */
#endif
#ifndef POSTS
#define POSTS 1 /* of a thread that only posts */
#endif
#ifndef BYTES
#define BYTES 2 /* times that the socket becomes readable */
#endif
#define WORKS  (POLLERS + POSTERS + 1) /* each thread has its QP; the last is nobody's */
#define NOBODY 255
#define LEASE  2 /* looks without a poll end a lease */

mtype = { OFF, NEAR, FAR };

typedef shard {
    bool leased, near, steady, deferring, polls, passes, sends;
    bool top[WORKS];           /* the stack of deferred work */
    bool sockets;              /* the source is in its epoll set */
    bool watched, relieved, visited, visits;
    byte leader = NOBODY;
    mtype due = OFF;           /* the thread's: when it looks next */
    byte idle;                 /* its looks without a poll */
    bool armed;                /* for the judge: and not polled since */
    byte pushing;              /* for the judge: threads that may kick soon */
};
shard iw_shards[SHARDS];
#define s iw_shards[i]

byte home[WORKS];   /* iw_home_shard() of a QP */
bool queued[WORKS]; /* IW_DEFERRED_QUEUED */
bool posted[WORKS]; /* and not sent */

bool lock;         /* iw_engine.lock */
bool kicked, kick; /* iw_engine.kicked; its eventfd is readable */
mtype looks = OFF; /* iw_engine.looks, the timer */
bool asleep;       /* the engine's thread is in sys_wait() */

bool readable;           /* the socket of the one source, which is QP 0's */
byte where;              /* its slot's shard */
bool event[WAITERS + 1]; /* a waiter's descriptor is readable */

#define LOCALS byte i, d, acts; bool was, taken[WORKS]

#define lock_get() atomic { !lock -> lock = true }
#define lock_put() lock = false

inline iw_engine_kick()
{
    if
    :: atomic { kicked -> skip }
    :: atomic { !kicked -> kicked = true }
        kick = true
    fi
}

inline iw_engine_watch_locked()
{
    s.watched = s.leader == NOBODY && !s.visited && !s.relieved
}

/* ---- deferred.c ---- */

inline iw_deferred_run()
{
    atomic { /* the exchange */
        for (d : 0 .. WORKS - 1) {
            taken[d] = s.top[d];
            s.top[d] = false
        }
        d = 0
    }
    do
    :: d == WORKS -> d = 0; break
    :: d < WORKS && !taken[d] -> d++
    :: d < WORKS && taken[d] ->
        queued[d] = false;
        atomic { posted[d] = false; taken[d] = false; d++ } /* under tx.lock, as the post */
    od;
    skip
}

/* The push comes first, then the lease is read. */
inline iw_deferred_push(q)
{
    if
    :: atomic { queued[q] -> skip }
    :: atomic { !queued[q] -> queued[q] = true }
#ifdef MISTAKE_PUSH /* the lease is read first */
        was = s.leased;
        d_step { s.top[q] = true; s.pushing++ }
        if
        :: !was -> iw_engine_kick()
        :: was
        fi;
#else
        d_step { s.top[q] = true; s.pushing++ }
        s.deferring = true; /* iw_engine_check_soon() */
        if
        :: atomic { !s.leased -> skip } iw_engine_kick()
        :: s.leased ->
            if
            :: !s.near -> iw_engine_kick()
            :: s.near
            fi
        fi;
#endif
        s.pushing--
    fi
}

/* tx_queue.c: it is sent at once, or left to the next pass if somebody polls. */
inline iw_post_send(q)
{
    i = home[q];
    if
    :: atomic { s.leased -> posted[q] = true }
        iw_deferred_push(q)
    :: atomic { !s.leased -> s.sends = true }
    fi
}

/* ---- source.c ---- */

/* ready() moves it to where its QP is polled now, ADD before DEL; then it reads. */
inline iw_source_run()
{
    atomic { /* the slot's lock */
        if
        :: where != home[0] ->
#ifndef MISTAKE_MOVE /* DEL, and then there is no memory for ADD */
            iw_shards[home[0]].sockets = true;
#endif
            iw_shards[where].sockets = false;
            where = home[0]
        :: else
        fi
    }
    atomic {
        if
        :: readable ->
            readable = false;
            if /* it brings what somebody waits for, or not */
            :: WAITERS > 0 -> event[0] = true
            :: WAITERS > 1 -> event[WAITERS - 1] = true
            :: true
            fi
        :: else
        fi
    }
}

inline iw_engine_run_ready()
{
    if
    :: s.sockets && readable -> iw_source_run()
    :: else
    fi
}

/* ---- poller.c ---- */

inline iw_engine_polled()
{
    s.polls = true;
    if
    :: s.leased
    :: !s.leased /* not LEASE_RUN times yet */
    :: atomic { !s.leased -> s.leased = true; s.armed = false }
        iw_engine_kick()
    fi
}

inline iw_engine_poll()
{
    s.passes = true;
    iw_deferred_run();
    iw_engine_run_ready()
}

/* The lease ends, then what was left under it is run. */
inline iw_engine_arm()
{
    s.polls = false;
#ifdef MISTAKE_ARM /* what is pushed behind it is left under a lease that ends */
    iw_deferred_run();
    s.leased = false
#else
    if
    :: atomic { s.leased -> s.leased = false; s.armed = true }
        iw_deferred_run();
        iw_engine_kick()
    :: atomic { !s.leased -> s.armed = true }
        iw_deferred_run()
    fi
#endif
}

/* A thread of the program: does what it likes, and stops when it likes. */
proctype poller(byte q)
{
    LOCALS;
    do
    :: acts < ACTS ->
        acts++;
        if
        :: iw_post_send(q)
        :: i = home[q]; iw_engine_polled(); iw_engine_poll()
        :: i = home[q]; iw_engine_arm()
        :: SHARDS > 1 -> home[q] = 1 - home[q] /* meet(): its CQ moves */
        fi
    :: break
    od
}

proctype poster(byte q)
{
    LOCALS;
    do
    :: acts < POSTS -> acts++; iw_post_send(q)
    :: break
    od
}

/* ---- waiter.c ---- */

inline enter()
{
    lock_get();
    d_step { s.leader = me; iw_engine_watch_locked() }
    lock_put()
}

inline leave()
{
    lock_get();
    atomic {
        if
        :: s.leader == me -> s.leader = NOBODY
        :: else
        fi;
#ifndef MISTAKE_LEAVE /* the sockets stay off */
        iw_engine_watch_locked();
#endif
        s.visits = true;
        if
        :: often = !s.visited
        :: often = false
        fi
    }
    lock_put();
    if
    :: often -> iw_engine_kick()
    :: else
    fi
}

/* block_passes(): ppoll() of its event, and of the sockets while it leads. */
inline block_passes()
{
    do
    :: event[me] -> break
    :: s.leader == me && s.sockets && readable ->
        if
        :: s.leader == me -> iw_engine_run_ready(); break
        :: s.leader != me
        fi
    od
}

/* iw_engine_wait(), again and again; cancelled, which is leave() as well, or its event is there. */
proctype waiter(byte me)
{
    LOCALS;
    bool often;
    do
    :: acts < ACTS ->
        acts++;
        iw_engine_arm();
        enter();
        if
        :: block_passes()
        :: true
        fi;
        leave();
        event[me] = false
    :: break
    od
}

/* ---- engine.c ---- */

inline take_kick()
{
    if
    :: kicked ->
        kick -> kick = false; /* its write may still be due */
        kicked = false
    :: !kicked
    fi
}

/* What comes of it: a lease, whether the sockets stay off, and when the next look is due. */
inline look()
{
    d_step {
        s.idle = (s.polls || s.sends -> 0 : (s.idle < LEASE -> s.idle + 1 : LEASE));
        s.polls = false;
        passes = s.passes;
        s.passes = false;
        sends = s.sends;
        s.sends = false
    }
    d_step { deferring = s.deferring; s.deferring = false }
    lock_get();
    leased = s.leased && s.idle < LEASE;
    atomic {
        if
        :: leased && passes -> s.relieved = true
        :: s.relieved = false
        fi;
        if
        :: passes -> s.steady = true
        :: s.steady = false
        fi;
        if
        :: s.due = NEAR
        :: !deferring || s.steady -> s.due = FAR
        fi;
        if /* look_at_visits_locked() */
        :: s.visits -> s.visited = true
        :: s.visited = false
        fi;
        s.visits = false
    }
    s.near = s.steady || s.due == NEAR;
#ifdef MISTAKE_LEASE /* an arm in between is undone */
    s.leased = leased;
#else
    if
    :: !leased -> s.leased = false
    :: leased
    fi;
#endif
    iw_engine_watch_locked();
    lock_put();
    if
    :: !leased || (!passes && !sends) -> iw_deferred_run()
    :: else
    fi;
    d_step { passes = false; sends = false; deferring = false; leased = false }
}

/* Looks if it is time. */
inline watch()
{
    if
    :: !s.leased -> look()
    :: s.leased ->
        if
        :: s.due == OFF -> look()
        :: s.due != OFF
        fi
    fi;
#ifndef MISTAKE_NEAR /* what was deferred during the look waits for 1 ms */
    if
    :: !s.steady && s.due == FAR && s.deferring -> s.due = NEAR; s.near = true
    :: else
    fi;
#endif
    if
    :: s.leased || s.visited
    :: else -> s.due = OFF
    fi
}

/* The timer is for the first look that is due. */
inline watch_pollers()
{
    do
    :: i < SHARDS -> watch(); i++
    :: i == SHARDS -> i = 0; break
    od;
    atomic {
        looks = OFF;
        for (i : 0 .. SHARDS - 1) {
            if
            :: s.due == NEAR -> looks = NEAR
            :: s.due == FAR && looks == OFF -> looks = FAR
            :: else
            fi
        }
        i = 0
    }
}

/* It fires: what was due then is, and what is due later comes nearer. */
inline fire()
{
    atomic {
        for (i : 0 .. SHARDS - 1) {
            s.due = (s.due == looks -> OFF : (s.due == FAR -> NEAR : s.due))
        }
        looks = OFF;
        i = 0
    }
}

#define wakes(n) (iw_shards[n].watched && iw_shards[n].sockets && readable)

proctype engine_main()
{
    LOCALS;
    bool leased, deferring, passes, sends;
    do
    :: take_kick();
        watch_pollers();
        asleep = true;
        if /* sys_wait(iw_engine.wait_set) */
        :: atomic { kick -> asleep = false }
        :: atomic { looks != OFF -> asleep = false; fire() }
        :: atomic { wakes(0) -> asleep = false } iw_engine_run_ready()
#if SHARDS > 1
        :: atomic { wakes(1) -> asleep = false; i = 1 } iw_engine_run_ready(); i = 0
#endif
        fi
    od
}

/* The network. */
proctype peer()
{
    byte n;
    do
    :: atomic { n < BYTES && !readable -> readable = true; n++ }
    :: break
    od
}

/* ---- what has to be ---- */

#define late(n)                                                                                    \
    (asleep && looks == FAR && !kicked && !kick && iw_shards[n].leased &&                          \
     iw_shards[n].deferring && !iw_shards[n].steady && !iw_shards[n].pushing)

proctype judge()
{
    byte q;
    do
    /* It is in a set at any time. */
    :: atomic { !iw_shards[0].sockets && !iw_shards[SHARDS - 1].sockets -> assert(false) }
    /* Who arms gives the shard to the thread at once. */
    :: atomic { iw_shards[0].leased && iw_shards[0].armed -> assert(false) }
    /* Under a lease the thread looks within 100 us at what was left to pollers, unless these run
     * such work all the time. */
    :: atomic { late(0) || late(SHARDS - 1) -> assert(false) }
    /* When nothing can happen any more, all that was posted is sent, and all that came is read. */
    :: atomic {
            timeout;
            for (q : 0 .. WORKS - 1) {
                assert(!posted[q] && !queued[q])
            }
            assert(!readable);
            break
        }
    od
}

init {
    byte n;
    atomic {
        run engine_main();
        run peer();
        run judge();
        iw_shards[0].sockets = true;
        for (n : 0 .. SHARDS - 1) {
            iw_shards[n].watched = true
        }
        n = 0;
        do
        :: n < POLLERS -> run poller(n); n++
        :: n >= POLLERS && n < POLLERS + POSTERS -> run poster(n); n++
        :: else -> break
        od;
        n = 0;
        do
        :: n < WAITERS -> run waiter(n); n++
        :: else -> break
        od
    }
}

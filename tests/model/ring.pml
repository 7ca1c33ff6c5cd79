/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who sleeps at a ring is rung for: src/iwarp/conn/ring.h. The names are those of conn/ring.c.
 *
 * One producer, one consumer, ROOM places, MESSAGES to pass. Either sleeps when there is nothing
 * for it. Another thread of the consumer's process may arm the ring at any time, as the engine's
 * thread does when a poller stays away.
 *
 * Stores are buffered, one place deep for each variable that a side writes, and become visible when
 * they like, but in order; a fence waits for all, an exchange does, too. That is what x86 does, and
 * what weaker processors may do to a store and a later load, which is all that counts here: data is
 * published by a release and read behind an acquire.
 *
 * Whether the producer wants room is asked once for each QUARTER that was used, and it is rung for
 * when half of ROOM is used.
 *
 * MISTAKE_... leaves out one thing, or hears the bell only behind the look that it was rung for; then
 * somebody sleeps for ever, which is a deadlock.
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef ROOM
#define ROOM 1
#endif
#ifndef ARMS
#define ARMS 1
#endif
#ifndef QUARTER
#define QUARTER 1
#endif
#ifdef MISTAKE_SELDOM
#undef QUARTER
#define QUARTER ROOM
#endif

byte head, tail;             /* as the other side sees them */
bit awake, wants_room;       /* flags: written by exchanges and behind fences only */
byte own_head, own_tail;     /* stored, and maybe not visible */
bit bell_consumer, bell_producer;
bit look_again;              /* iwc_ring_arm() has said no: somebody looks, soon */

#define drain_producer head = own_head
#define drain_consumer tail = own_tail

/** A store becomes visible some time. */
active proctype visible()
{
end:
    do
    :: atomic { head != own_head -> head = own_head }
    :: atomic { tail != own_tail -> tail = own_tail }
    od
}

inline iwc_ring_rouses()
{
#ifndef MISTAKE_FENCE
    atomic { drain_producer };
#endif
    if
    :: awake == 0 ->
        atomic {
            drain_producer;
            if
            :: awake == 0 -> awake = 1; bell_consumer = 1
            :: else -> skip
            fi
        }
    :: else -> skip
    fi
}

active proctype producer()
{
#ifdef MISTAKE_HEAR
    bit late = 0;
#endif
    byte sent = 0, seen;
    do
    :: sent == MESSAGES -> break
    :: else ->
        seen = tail;
        if
        :: own_head - seen < ROOM ->
            own_head++; /* iwc_ring_publish() */
            sent++;
            iwc_ring_rouses()
        :: else -> /* iwc_ring_want_room() */
            atomic { drain_producer; wants_room = 1 };
#ifdef MISTAKE_LOOK
            bell_producer == 1;
            bell_producer = 0
#else
            seen = tail;
            if
            :: own_head - seen < ROOM -> wants_room = 0
            :: else ->
#ifdef MISTAKE_HEAR
                if
                :: late -> bell_producer = 0
                :: else -> skip
                fi;
                bell_producer == 1;
                late = 1
#else
                bell_producer == 1;
                bell_producer = 0 /* iwc_stream_shm_hear(), and only then it looks */
#endif
            fi
#endif
        fi
    od
}

/** The consumer, until it finds nothing; then it arms, and sleeps. */
active proctype consumer()
{
    byte seen, relieved = 0;
    do
    :: own_tail == MESSAGES -> break
    :: else ->
        seen = head;
        if
        :: seen != own_tail ->
            own_tail++; /* iwc_ring_use() */
            if
            :: own_tail - relieved >= QUARTER -> /* iwc_ring_relieves() */
                relieved = own_tail;
#ifndef MISTAKE_RELIEF
                atomic { drain_consumer };
#endif
                if
                :: wants_room == 1 && seen - own_tail <= ROOM / 2 ->
                    atomic {
                        drain_consumer;
                        if
                        :: wants_room == 1 -> wants_room = 0; bell_producer = 1
                        :: else -> skip
                        fi
                    }
                :: else -> skip
                fi
            :: else -> skip
            fi
        :: else -> /* iwc_ring_arm() */
            atomic { drain_consumer; awake = 0 };
#ifdef MISTAKE_ARM
            bell_consumer == 1 || look_again == 1;
            atomic { bell_consumer = 0; look_again = 0 }
#else
            seen = head;
            if
            :: seen != own_tail -> awake = 1
            :: else ->
                bell_consumer == 1 || look_again == 1;
                atomic { bell_consumer = 0; look_again = 0 }
            fi
#endif
        fi
    od
}

/** Another thread of the consumer's process: it arms, and has somebody look if there is something.
 */
active proctype armer()
{
    byte i = 0, seen, mine;
    do
    :: i == ARMS -> break
    :: else ->
        i++;
        awake = 0;
        seen = head;
        mine = own_tail;
        if
        :: seen != mine ->
            awake = 1;
#ifndef MISTAKE_AGAIN
            look_again = 1
#endif
        :: else -> skip
        fi
    od
}

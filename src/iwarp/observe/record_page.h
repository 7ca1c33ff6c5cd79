/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of a process as it stands in its file, which its memory is; shared with the tool that
 * reads it. A process that ends in whatever way leaves it as it was at that moment.
 *
 * Everything is in host byte order and naturally aligned. There is a ring of events for the verbs,
 * one for the connection manager, one for the wire, so that none of them drives the others out.
 * Event number n of a ring is in place n % RECORD_EVENTS; its seq is 2n + 2, and odd while it is
 * written. A reader takes the file twice and believes what is the same in both.
 */
#ifndef ANYWARP_OBSERVE_RECORD_PAGE_H
#define ANYWARP_OBSERVE_RECORD_PAGE_H

#include "observe/record_list.h"
#include "wire/mpa.h"

#include <stddef.h>
#include <stdint.h>

#define RECORD_MAGIC   "awrecord"
#define RECORD_VERSION 1

#define RECORD_EVENTS 1024 /* of a ring, a power of two */
#define RECORD_CONNS  256  /* connections; what there are more of at a time has no frames here */
#define RECORD_ARGS   8
#define RECORD_TEXT   32
#define RECORD_BYTES  80 /* of a frame: each message without data is shorter, markers included */

enum record_ring_of { RECORD_VERBS, RECORD_CM, RECORD_WIRE, RECORD_RINGS };

enum record_what {
#define X(name, ring, call, arguments) RECORD_##name,
    RECORD_LIST(X)
#undef X
        RECORD_WHATS,
};

enum record_flags {
    RECORD_OPEN = 1,   /* a call that has not returned */
    RECORD_OUT = 2,    /* of a frame: of this process, else the peer's */
    RECORD_START = 4,  /* an MPA Request or Reply */
    RECORD_FIN = 8,    /* no frame: the end of the direction */
    RECORD_RESET = 16, /* by RST */
    RECORD_OTHER = 32, /* bytes that are no frame, or a part of one */
};

struct record_frame {
    uint32_t conn;     /* number of the connection; 0: it has no row */
    uint32_t qp_num;   /* 0: it is not linked to one yet */
    uint32_t position; /* in the stream, the start-up frame included; modulo 2^32 */
    uint32_t len;      /* of which bytes has the first RECORD_BYTES at most */
    uint8_t bytes[RECORD_BYTES];
};

struct record_event {
    uint64_t seq;
    uint64_t ns; /* CLOCK_MONOTONIC; of a call: when it began */
    uint32_t thread;
    uint16_t what;  /* enum record_what */
    uint16_t flags; /* enum record_flags */
    int32_t result; /* of a call that returned: 0 or an errno */
    uint32_t spare;
    union {
        struct {
            uint64_t arg[RECORD_ARGS];
            char text[RECORD_TEXT];
        };
        struct record_frame frame;
    };
};

/** One way of a connection. */
struct record_start {
    uint64_t ns;  /* when its start-up frame was whole */
    uint32_t len; /* of that; 0: it was not yet */
    uint8_t bytes[MPA_START_MAX];
};

struct record_conn {
    uint32_t id; /* its number, from 1 on; 0: the row is free, or is being written */
    uint32_t qp_num;
    uint64_t began; /* CLOCK_MONOTONIC */
    uint64_t ended; /* 0: it has not */
    uint8_t ipv6, active;
    uint16_t local_port, peer_port;
    uint8_t local[16], peer[16];  /* as on the wire; IPv4: the first four */
    struct record_start start[2]; /* in, out */
};

/** An event of this process, as long as no later one has its place. */
struct iw_recorded {
    struct record_event *event; /* NULL: nothing is recorded */
    uint64_t seq;
};

struct record_ring {
    uint64_t next; /* number of the next event */
    uint64_t lost; /* that found their place taken by one being written */
    uint8_t line[48];
};

struct record_head {
    char magic[8];
    uint32_t version;
    uint32_t pid;
    uint64_t monotonic, realtime; /* one moment, the beginning, on both clocks */
    char release[16];             /* of anywarp */
    char command[64];
    uint32_t exited; /* 1: the process called exit() */
    uint32_t conns;  /* so far */
};

struct record_page {
    union {
        struct record_head head;
        uint8_t head_room[256];
    };
    struct record_ring ring[RECORD_RINGS];
    struct record_event events[RECORD_RINGS][RECORD_EVENTS];
    struct record_conn conn[RECORD_CONNS];
};

_Static_assert(sizeof(struct record_event) == 128, "two cache lines");
_Static_assert(sizeof(struct record_ring) == 64, "a cache line");
_Static_assert(sizeof(struct record_head) <= 256, "the head has its room");

#endif

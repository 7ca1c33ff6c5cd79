/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory whose every byte is known: what it has to hold, and who is using it meanwhile. A work
 * request takes effect in the image when it is posted, and keeps others off its bytes until that
 * effect is sure to have happened; so what may overtake what (RFC 5040 section 5.5) never matters.
 */
#ifndef ANYWARP_TESTS_WALK_MEMORY_H
#define ANYWARP_TESTS_WALK_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_BYTES  65536
#define MEMORY_CANARY 64

/** Who uses a byte. The peer is the one that has the memory's key. */
enum memory_user {
    MEMORY_GATHER,      /* a Send or Write of the owner reads it */
    MEMORY_REMOTE_READ, /* a Read of the peer reads it */
    MEMORY_SINK,        /* a Read or atomic of the owner writes it */
    MEMORY_RECV,        /* a receive writes it */
    MEMORY_REMOTE,      /* a Write or atomic of the peer writes it */
    MEMORY_USERS
};

#define MEMORY_BIT(user) (1u << (user))
#define MEMORY_WRITERS                                                                             \
    (MEMORY_BIT(MEMORY_SINK) | MEMORY_BIT(MEMORY_RECV) | MEMORY_BIT(MEMORY_REMOTE))
#define MEMORY_READERS (MEMORY_BIT(MEMORY_GATHER) | MEMORY_BIT(MEMORY_REMOTE_READ))

struct memory {
    struct ibv_mr *mr;
    uint8_t *block, *bytes; /* bytes between canaries in block */
    uint8_t image[MEMORY_BYTES];
    uint8_t users[MEMORY_USERS][MEMORY_BYTES]; /* how many */
};

struct range {
    struct memory *memory; /* NULL: none */
    uint32_t at, len;
};

void memory_open(struct memory *m, struct ibv_pd *pd);
/** Checks the canaries. */
void memory_close(struct memory *m);

/** Whether none of the users in the set @p bits has a byte of @p r. */
bool memory_is_free_of(const struct range *r, unsigned bits);
void memory_use(const struct range *r, enum memory_user user);
void memory_leave(const struct range *r, enum memory_user user);
/** The same, of one who may have written there or not: what is there has to be there. */
void memory_abandon(const struct range *r, enum memory_user user);

static inline uint8_t *range_image(const struct range *r)
{
    return r->memory->image + r->at;
}

/** Whether the memory holds what it has to. */
bool memory_is_right(const struct range *r);
/** The same for all that nobody writes. */
bool memory_is_right_at_rest(const struct memory *m);

#endif

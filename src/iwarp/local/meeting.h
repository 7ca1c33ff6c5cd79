/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where two ends of a connection on one host meet outside of it, to pass on descriptors: one offers
 * a name and a token over the connection, the other comes to the name, an abstract unix socket,
 * with the token and the memory. Abstract names belong to a network namespace. Who finds or takes
 * the name without the token, which only the connection carried, gains nothing. Only processes of
 * one user meet: what the memory costs, and who may look at it, is then the same for both.
 *
 * Nobody waits: what does not come about leaves both where they are.
 */
#ifndef ANYWARP_LOCAL_MEETING_H
#define ANYWARP_LOCAL_MEETING_H

#include "common/list.h"
#include "common/lock.h"
#include "wire/mpa.h"

#define IW_MEETING_NAME  16
#define IW_MEETING_TOKEN 16

/** Embedded in its owner. */
struct iw_offer {
    struct list link;
    uint8_t token[IW_MEETING_TOKEN];
    /** It is being taken: the owner must not go before taken() returns. A lock is held. */
    void (*hold)(struct iw_offer *o);
    /**
     * The other end came. No lock is held.
     * @param bell, memory  descriptors, the owner's from now on
     */
    void (*taken)(struct iw_offer *o, int bell, int memory, uint32_t ring);
};

/**
 * Offers; @p say is what to tell the other end.
 * @param o  hold and taken are set
 * @return 0 or a negative errno
 */
int iw_offer_make(struct iw_offer *o, uint8_t say[MPA_OFFER]);

/** Takes the offer back; harmless if that is done. One that is being taken may go on. */
void iw_offer_withdraw(struct iw_offer *o);

/** Goes where another's offer says. @return the bell, or a negative errno: -EPERM: another user's
 */
int iw_offer_visit(const uint8_t said[MPA_OFFER]);

/** Takes the offer, with @p memory. @return 0 or a negative errno */
int iw_offer_greet(int bell, const uint8_t said[MPA_OFFER], int memory, uint32_t ring);

/** What the module does about fork(); see process/atfork.h. */
void iw_meeting_fork(enum fork_step step);

#endif

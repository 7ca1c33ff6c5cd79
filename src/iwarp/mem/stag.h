/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The STag table of the process.
 *
 * An STag is a 24-bit index and an 8-bit key. An index belongs to one region at a time, so that a
 * memory window may change its key freely.
 *
 * Readers take no lock, but are in a section of their domain (quiesce.h). They may come across the
 * slot of any protection domain, while revoking waits only for the sections of its own: therefore
 * slots are never freed and never change their chain, and a region is looked into only after its
 * slot has named the reader's own domain.
 *
 * Why a region that is looked into cannot be freed: a slot holds a region until iw_stag_release(),
 * which comes after the grace period, and is filled in the order domain, region, STag. A reader
 * that saw its STag in the slot and then its own domain therefore gets, as region, none, or one of
 * its domain: that of the STag, or one put there since, which was never visible before the section
 * of the reader began. The grace period of either waits for the reader. Regions of other domains,
 * for which nobody waits, are passed by without a look: only slots are read, and those stay.
 */
#ifndef ANYWARP_MEM_STAG_H
#define ANYWARP_MEM_STAG_H

#include "mem/region.h"

enum iw_stag_found { IW_STAG_NONE, IW_STAG_FOREIGN, IW_STAG_OWN };

/**
 * Looks @p stag up on behalf of @p pd, in a section of it or with pd->grants held: that long the
 * region is not freed.
 * @param r  [out] the region, maybe dead, if it is the domain's own
 */
enum iw_stag_found iw_stag_find(uint32_t stag, const struct iw_pd *pd, struct iw_region **r);
/** The same by index, whatever the key. */
enum iw_stag_found iw_stag_find_any_key(uint32_t stag, const struct iw_pd *pd,
                                        struct iw_region **r);

/** Gives @p r a random STag whose index is not 0 and not in use. @return 0, ENOMEM, EIO */
int iw_stag_insert(struct iw_region *r);
/** The region is going to be hidden, but its STag is another's soon: nobody else gets the index. */
void iw_stag_keep(struct iw_region *r);
/** Now @p r, else filled in, has slot and STag of @p old, which is hidden. */
void iw_stag_inherit(struct iw_region *r, const struct iw_region *old);
/** The region has got another key: it is found by that from now on, not by the old one. */
void iw_stag_rename(struct iw_region *r);
/** From now on the STag is not found any more. */
void iw_stag_hide(struct iw_region *r);
/** After the grace period: the slot may be used again. */
void iw_stag_release(struct iw_region *r);

/** What the module does about fork(); see process/atfork.h. */
void iw_stag_fork(enum fork_step step);

#endif

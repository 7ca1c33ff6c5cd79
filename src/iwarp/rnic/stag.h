/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The STag table of the process.
 *
 * Readers take no lock. They may come across the slot of any protection domain, while revoking
 * waits only for the QPs of its own: therefore slots are never freed and never change their chain,
 * and a region is looked into only after its slot has named the reader's own domain.
 */
#ifndef ANYWARP_RNIC_STAG_H
#define ANYWARP_RNIC_STAG_H

#include "rnic/region.h"

enum iw_stag_found { IW_STAG_NONE, IW_STAG_FOREIGN, IW_STAG_OWN };

/**
 * Looks @p stag up on behalf of a QP of @p pd, one of whose locks is held.
 * @param r  [out] the region, maybe dead, if it is the domain's own
 */
enum iw_stag_found iw_stag_find(uint32_t stag, const struct iw_pd *pd, struct iw_region **r);

/** Gives @p r a random STag that is not 0 and not in use. @return 0, ENOMEM, EIO */
int iw_stag_insert(struct iw_region *r);
/** From now on the STag is not found any more. */
void iw_stag_hide(struct iw_region *r);
/** After the grace period: the slot may be used again. */
void iw_stag_release(struct iw_region *r);

#endif

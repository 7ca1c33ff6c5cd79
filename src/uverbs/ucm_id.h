/* SPDX-License-Identifier: BSD-2-Clause */
/* The ids of rdma_cm commands: numbers, and who uses them. */
#ifndef ANYWARP_UVERBS_UCM_ID_H
#define ANYWARP_UVERBS_UCM_ID_H

#include "uverbs/file.h"

#include <rdma/rdma_cma.h>

struct ucm_id {
    struct rdma_cm_id *cm;
    struct uv_file *file; /* whose events it has; no reference: closing that destroys this */
    uint64_t uid;
    uint32_t handle;
    uint32_t events; /* reported */
    int users;       /* commands that are at it */
};

/** @return a new id without rdma_cm_id, used by the caller; NULL: no memory */
struct ucm_id *ucm_id_add(struct uv_file *file, uint64_t uid);

/** @return an id of this file, used by the caller until ucm_id_put(); NULL: there is none */
struct ucm_id *ucm_id_get(struct uv_file *file, uint32_t handle);

void ucm_id_put(struct ucm_id *id);

/** From now on its events are those of this file. */
void ucm_id_move(struct ucm_id *id, struct uv_file *file);

/** Nobody finds it any more; waits for all users but the caller, then destroys and frees it.
 * @return how many events were reported */
uint32_t ucm_id_destroy(struct ucm_id *id);

/** Destroys all ids of a file. */
void ucm_id_destroy_all(struct uv_file *file);

/** In a child of fork(): there is none. */
void ucm_id_forked(void);

#endif

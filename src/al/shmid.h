/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that processes of one user find by a SHMID. Each that has it holds a lock on its file, so
 * that the last one knows that it is the last; what was left by processes that died is nobody's.
 */
#ifndef ANYWARP_AL_SHMID_H
#define ANYWARP_AL_SHMID_H

#include <iba/ib_al.h>
#include <stddef.h>

struct al_shared {
    void *memory; /* NULL: there is none */
    size_t length;
    int fd;
    char name[160];
};

/**
 * @param wish where it should be, or NULL
 * @return 0; EEXIST: others have it with another length; other errno
 */
int al_shared_get(struct al_shared *s, const ib_shmid_t shmid, size_t length, void *wish);

/** Also for one that has no memory. */
void al_shared_put(struct al_shared *s);

#endif

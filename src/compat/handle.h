/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small numbers for objects: index, and a generation above it, so that a number of an object that
 * is gone names no other one until the generations have gone round. The caller locks.
 */
#ifndef ANYWARP_COMPAT_HANDLE_H
#define ANYWARP_COMPAT_HANDLE_H

#include <stdint.h>

struct handle_entry {
    void *object; /* NULL: free */
    uint32_t generation;
    uint32_t type;
    uint32_t next_free;
};

/** All zero is an empty table. */
struct handle_table {
    struct handle_entry *entries;
    uint32_t count; /* of entries; 0 is never used, so no handle is 0 */
    uint32_t free;
};

/** @return the new handle, never 0; 0: no memory, or a million objects */
uint32_t handle_add(struct handle_table *t, uint32_t type, void *object);

/** @return the object, or NULL if there is none of this number and type */
void *handle_get(const struct handle_table *t, uint32_t type, uint32_t handle);

void handle_remove(struct handle_table *t, uint32_t handle);

/** @return an object of this type, any; NULL: there is none */
void *handle_any(const struct handle_table *t, uint32_t type);

void handle_fini(struct handle_table *t);

#endif

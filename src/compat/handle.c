/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/handle.h"

#include <stdlib.h>

enum { INDEX_BITS = 20, INDEX_MASK = (1 << INDEX_BITS) - 1 };

static struct handle_entry *find(const struct handle_table *t, uint32_t handle)
{
    uint32_t index = handle & INDEX_MASK;
    if (index == 0 || index >= t->count)
        return NULL;
    struct handle_entry *e = &t->entries[index];
    return e->object && e->generation == handle >> INDEX_BITS ? e : NULL;
}

static int grow(struct handle_table *t)
{
    uint32_t count = t->count ? t->count * 2 : 32;
    if (count > INDEX_MASK + 1)
        return -1;
    struct handle_entry *entries = realloc(t->entries, count * sizeof *entries);
    if (!entries)
        return -1;
    for (uint32_t i = t->count; i < count; i++)
        entries[i] = (struct handle_entry){.next_free = i + 1 < count ? i + 1 : 0};
    t->free = t->count ? t->count : 1;
    t->entries = entries;
    t->count = count;
    return 0;
}

uint32_t handle_add(struct handle_table *t, uint32_t type, void *object)
{
    if (!t->free && grow(t) != 0)
        return 0;
    uint32_t index = t->free;
    struct handle_entry *e = &t->entries[index];
    t->free = e->next_free;
    e->object = object;
    e->type = type;
    return e->generation << INDEX_BITS | index;
}

void *handle_get(const struct handle_table *t, uint32_t type, uint32_t handle)
{
    struct handle_entry *e = find(t, handle);
    return e && e->type == type ? e->object : NULL;
}

void handle_remove(struct handle_table *t, uint32_t handle)
{
    struct handle_entry *e = find(t, handle);
    if (!e)
        return;
    e->object = NULL;
    e->generation = (e->generation + 1) & (UINT32_MAX >> INDEX_BITS);
    e->next_free = t->free;
    t->free = handle & INDEX_MASK;
}

void *handle_any(const struct handle_table *t, uint32_t type)
{
    for (uint32_t i = 1; i < t->count; i++) {
        if (t->entries[i].object && t->entries[i].type == type)
            return t->entries[i].object;
    }
    return NULL;
}

void handle_fini(struct handle_table *t)
{
    free(t->entries);
    *t = (struct handle_table){0};
}

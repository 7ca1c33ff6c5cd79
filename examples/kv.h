/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the key-value store: what its clients read from the server's memory, and what they
 * send. Numbers are in network byte order; keys and values are strings that end with a 0.
 *
 * A key is in one of KV_PROBES entries, the first of which is told by its hash. The first of them
 * that is empty says that it is nowhere: entries are never removed.
 */
#ifndef EXAMPLES_KV_H
#define EXAMPLES_KV_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KV_ENTRIES 1024
#define KV_PROBES  8
#define KV_KEY     32
#define KV_VALUE   208

struct kv_entry {
    uint64_t checksum; /* of all that follows */
    uint64_t version;  /* counts what was put here; 0 in an empty entry */
    char key[KV_KEY];
    char value[KV_VALUE];
};

/* Client to server. */
struct kv_put {
    char key[KV_KEY];
    char value[KV_VALUE];
};

/* Server to client: the version of the entry, or 0 if there is no room. */
struct kv_reply {
    uint64_t version;
};

/* FNV-1a: not a secret one, only to find an entry, or one that was read while it was written. */
static inline uint64_t kv_hash(const void *data, size_t size)
{
    const unsigned char *byte = data;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3;
    return hash;
}

static inline uint64_t kv_checksum(const struct kv_entry *entry)
{
    return htobe64(kv_hash(&entry->version, sizeof *entry - offsetof(struct kv_entry, version)));
}

/* False if the entry was read while the server wrote it. */
static inline bool kv_is_whole(const struct kv_entry *entry)
{
    return entry->checksum == kv_checksum(entry);
}

/* The i-th entry to look for a key in. */
static inline size_t kv_index(const char *key, size_t i)
{
    return (kv_hash(key, strlen(key)) + i) % KV_ENTRIES;
}

#endif

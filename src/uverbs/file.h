/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind a descriptor. Programs get duplicates, so that those the objects themselves own
 * stay open whatever is closed. A file has descriptors (with the last, it is closed) and references
 * (with the last, it is gone); every descriptor holds a reference.
 */
#ifndef ANYWARP_UVERBS_FILE_H
#define ANYWARP_UVERBS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct uv_file;

struct uv_file_ops {
    /** Each returns the length, or a negative errno. NULL: EINVAL. */
    ssize_t (*write)(struct uv_file *f, const uint8_t *command, size_t len);
    ssize_t (*read)(struct uv_file *f, void *events, size_t len);
    /** @return 0 or a negative errno. NULL: ENOTTY. */
    int (*ioctl)(struct uv_file *f, unsigned long request, void *argument);
    void (*close)(struct uv_file *f);   /* the last descriptor is gone; may be NULL */
    void (*destroy)(struct uv_file *f); /* nobody refers to it; frees the object */
};

struct uv_file {
    const struct uv_file_ops *ops;
    void *object;
    struct uv_file *next_free;
    int refs;
    int fds;
    unsigned process; /* that made it: one more for each fork() on the way here */
    int number; /* of a device among all, as in /dev/infiniband/uverbs0; -1: this is no device */
};

/** With the caller's reference. @return NULL: no memory */
struct uv_file *uv_file_create(const struct uv_file_ops *ops, void *object);

/** @return a new descriptor for @p f, a duplicate of @p fd; or a negative errno */
int uv_file_open(struct uv_file *f, int fd);

/** @return the file of a descriptor, with a reference; NULL: not ours */
struct uv_file *uv_file_get(int fd);

/** Whether a descriptor is ours, or was of the process that forked, at this moment. */
bool uv_file_is(int fd);

void uv_file_ref(struct uv_file *f);
void uv_file_put(struct uv_file *f);

/** uv_file_put() for pthread_cleanup_push(). */
void uv_file_drop(void *f);

/** @p to is now a duplicate of @p from, whatever it was. Both may be foreign. */
void uv_file_duplicated(int from, int to);

/** Forgets a descriptor, which the caller then closes. @return false: it was not ours */
bool uv_file_forget(int fd);

/** In a child of fork(): what there is is the parent's; its descriptors can be closed, no more. */
void uv_file_forked(void);

/**
 * Whether memory can be read.
 *
 * @param quick a page that this thread asked for lately need not be asked for again
 */
bool uv_readable(uint64_t address, size_t len, bool quick);

/** Whether memory can be written; its bytes may change. As uv_readable(). */
bool uv_writable(uint64_t address, size_t len, bool quick);

#endif

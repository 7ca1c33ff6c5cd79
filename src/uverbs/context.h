/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that was opened for commands, and its objects. */
#ifndef ANYWARP_UVERBS_CONTEXT_H
#define ANYWARP_UVERBS_CONTEXT_H

#include "compat/handle.h"
#include "uverbs/file.h"

#include <infiniband/verbs.h>
#include <pthread.h>

/** In the order in which closing destroys them. */
enum uv_type { UV_QP, UV_SRQ, UV_CQ, UV_MR, UV_AH, UV_PD, UV_TYPES };

struct uv_object {
    enum uv_type type;
    uint32_t handle;
    uint64_t user_handle;
    int users; /* objects that need this one */
    struct uv_object *needs[4];
    struct uv_object *next;  /* of queue pairs; numbers.c */
    struct uv_file *channel; /* of a CQ: its completion channel, with a reference, or NULL */
    uint32_t comp_events;    /* handed out by read() */
    uint32_t async_events;
    union {
        void *any;
        struct ibv_qp *qp;
        struct ibv_srq *srq;
        struct ibv_cq *cq;
        struct ibv_mr *mr;
        struct ibv_ah *ah;
        struct ibv_pd *pd;
    };
};

struct uv_context {
    /* Commands that make or destroy objects hold it alone, all others together. */
    pthread_rwlock_t lock;
    struct ibv_device *device;
    struct ibv_context *verbs; /* NULL before GET_CONTEXT */
    struct handle_table handles;
    struct uv_channel *channels; /* all that are open */
    pthread_mutex_t channels_lock;
    bool closed;
};

struct uv_channel {
    struct ibv_comp_channel *verbs;
    struct uv_file *context; /* with a reference */
    struct uv_channel *next;
};

/** A file that takes verbs commands. @return its descriptor, or a negative errno */
int uv_context_open(const char *device);

/** The descriptor of asynchronous events. @return it, or a negative errno */
int uv_async_open(struct uv_file *context);

/** A completion channel. @return its descriptor, or a negative errno */
int uv_channel_open(struct uv_file *context);

/** @return the channel behind a descriptor of this context, with a reference; NULL: it is none */
struct uv_file *uv_channel_get(struct uv_file *context, int fd);

/** @return NULL: there is none of this type */
struct uv_object *uv_object_get(struct uv_context *c, enum uv_type type, uint32_t handle);

/** A handle for a new object. @return NULL: no memory */
struct uv_object *uv_object_add(struct uv_context *c, enum uv_type type, uint64_t user_handle);

/** @p o cannot be destroyed while @p user is there. */
void uv_object_need(struct uv_object *user, struct uv_object *o);

/** Takes the handle of an object back that has nothing behind it. */
void uv_object_drop(struct uv_context *c, struct uv_object *o);

/**
 * Destroys what is behind it, if nothing needs it; the object stays, to be read and dropped.
 *
 * @return 0, EBUSY, or what the verb said
 */
int uv_object_remove(struct uv_object *o);

/** uv_object_remove() and uv_object_drop(). @return 0, EBUSY, or what the verb said */
int uv_object_destroy(struct uv_context *c, struct uv_object *o);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, and when who has one is told. */
#ifndef ANYWARP_AL_CQ_H
#define ANYWARP_AL_CQ_H

#include "al/object.h"
#include "compat/events.h"
#include "compat/fifo.h"

#include <pthread.h>

struct al_cq {
    struct al_object o; /* the parent is a struct al_ca */
    ib_pfn_comp_cb_t comp_cb;
    cl_waitobj_handle_t wait_obj;
    ib_pfn_event_cb_t event_cb;
    pthread_mutex_t lock; /* of what follows */
    struct wc_fifo fifo;
    bool next;      /* told of the next event of the verbs */
    uint64_t until; /* told when so many have been pulled; 0: not */
    bool task_given;
    struct event_task task;
};

extern const struct al_kind al_cq_kind;

/** The verbs say that there are completions in the queue of this handle, if there is such a one. */
void al_cq_completed(const void *handle);

#endif

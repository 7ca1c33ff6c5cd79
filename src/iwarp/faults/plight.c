/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/plight.h"

#include "faults/chaos.h"

#include <stdlib.h>

#define BUCKETS 256

static struct {
    pthread_mutex_t mutex;
    struct iw_plight *bucket[BUCKETS];
} plights = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Objects that were freed leave theirs to the next one at the address. */
struct iw_plight *iw_plight(const void *object)
{
    pthread_mutex_lock(&plights.mutex);
    struct iw_plight **bucket = &plights.bucket[((uintptr_t)object >> 6) % BUCKETS], *p = *bucket;
    while (p && p->object != object)
        p = p->next;
    if (!p && (p = calloc(1, sizeof(*p)))) {
        p->object = object;
        pthread_mutex_init(&p->mutex, NULL);
        p->next = *bucket;
        *bucket = p;
    }
    pthread_mutex_unlock(&plights.mutex);
    return p;
}

void iw_plight_born(const void *object, const char *kind)
{
    if (!iw_chaos_on())
        return;
    iw_chaos_born(object, kind);
    struct iw_plight *p = iw_plight(object);
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->taken = p->decided = 0;
    p->hold = p->burst = p->single = 0;
    p->kept_back = p->spurious = false;
    p->status = p->recv_status = IBV_WC_SUCCESS;
    pthread_mutex_unlock(&p->mutex);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/numbers.h"

#include <string.h>

enum { BUCKETS = 256 };

static struct uv_object *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void uv_number_add(struct uv_object *qp)
{
    struct uv_object **bucket = &buckets[qp->qp->qp_num % BUCKETS];
    pthread_mutex_lock(&lock);
    qp->next = *bucket;
    *bucket = qp;
    pthread_mutex_unlock(&lock);
}

void uv_number_remove(struct uv_object *qp)
{
    struct uv_object **at = &buckets[qp->qp->qp_num % BUCKETS];
    pthread_mutex_lock(&lock);
    while (*at && *at != qp)
        at = &(*at)->next;
    if (*at)
        *at = qp->next;
    pthread_mutex_unlock(&lock);
}

struct ibv_qp *uv_number_use(const struct ibv_device *device, uint32_t number)
{
    pthread_mutex_lock(&lock);
    struct uv_object *o = buckets[number % BUCKETS];
    while (o &&
           (o->qp->qp_num != number || strcmp(o->qp->context->device->name, device->name) != 0))
        o = o->next;
    return o ? o->qp : NULL;
}

void uv_number_done(void)
{
    pthread_mutex_unlock(&lock);
}

void uv_number_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(buckets, 0, sizeof buckets);
}

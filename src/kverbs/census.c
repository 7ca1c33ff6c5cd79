/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/census.h"

#include <pthread.h>
#include <stdbool.h>

#include <linux/kernel.h>

static const char *const names[KV_KINDS] = {
    "protection domains",    "memory regions", "address handles", "completion queues",
    "shared receive queues", "queue pairs",    "CM ids",          "DMA mappings",
    "files in /proc",        "threads",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int count[KV_KINDS];
static bool given_up;

void kv_count(enum kv_kind kind, int by)
{
    pthread_mutex_lock(&lock);
    count[kind] += by;
    if (by < 0)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Could something still happen? */
static bool busy_locked(void)
{
    return count[KV_THREAD] > 0 || count[KV_CQ] > 0 || count[KV_QP] > 0 || count[KV_ID] > 0;
}

void kv_wait_idle(void)
{
    pthread_mutex_lock(&lock);
    while (busy_locked() && !given_up)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void kv_give_up(void)
{
    pthread_mutex_lock(&lock);
    given_up = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int kv_report_left(void)
{
    int left = 0;
    pthread_mutex_lock(&lock);
    for (enum kv_kind k = 0; k < KV_THREAD; k++) {
        if (count[k] > 0)
            printk(KERN_WARNING "%s left: %d\n", names[k], count[k]);
        left += count[k];
    }
    pthread_mutex_unlock(&lock);
    return left;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/context.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/kernel.h>
#include <linux/sched.h>

static __thread struct {
    const void *object;
    int spins;
} here;

void kv_interrupt_begin(const void *object)
{
    here.object = object;
}

void kv_interrupt_end(void)
{
    here.object = NULL;
}

const void *kv_interrupted_for(void)
{
    return here.object;
}

bool kverbs_in_interrupt(void)
{
    return here.object;
}

void kv_spin(int by)
{
    here.spins += by;
}

/* Places that have complained; when they are too many, none complains any more. */
static bool first_time(const char *file, int line)
{
    enum { PLACES = 256 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        const char *file;
        int line;
    } places[PLACES];
    static int count;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < count && (places[i].file != file || places[i].line != line))
        i++;
    bool first = i == count && count < PLACES;
    if (first) {
        places[count].file = file;
        places[count++].line = line;
    }
    pthread_mutex_unlock(&lock);
    return first;
}

void kverbs_might_sleep(const char *file, int line)
{
    if ((here.object || here.spins > 0) && first_time(file, line))
        printk(KERN_ERR "BUG: sleeping function called from invalid context at %s:%d, "
                        "in_interrupt(): %d, spinlocks: %d, thread: %s\n",
               file, line, in_interrupt(), here.spins, current->comm);
}

void kverbs_warn(const char *file, int line, const char *what)
{
    printk(KERN_WARNING "WARNING: at %s:%d: %s\n", file, line, what);
}

void kverbs_bug(const char *file, int line, const char *what)
{
    printk(KERN_EMERG "kernel BUG at %s:%d: %s\n", file, line, what);
    abort();
}

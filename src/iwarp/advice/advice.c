/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice/advice.h"

#include "common/append.h"
#include "env/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 256
#define MOST    1000 /* findings of a process; a program that does more wrong has enough to do */
#define RECORD  8192

struct told {
    struct told *next;
    enum iw_finding finding;
    const struct iw_stack *stack;
    uint64_t object;
};

static struct {
    struct lock lock;
    unsigned n;
    struct told *bucket[BUCKETS];
} advice = {.lock = LOCK(LOCK_ADVICE)};

static uint64_t hash_of(const char *s)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *s; s++)
        hash = (hash ^ (uint8_t)*s) * 0x100000001b3; /* FNV-1a */
    return hash;
}

/** Whether it is new. */
static bool note(enum iw_finding finding, const char *object, const struct iw_stack *stack)
{
    uint64_t hash = hash_of(object);
    struct told **bucket = &advice.bucket[(hash ^ finding) % BUCKETS];
    lock_get_leaf(&advice.lock);
    struct told *t = *bucket;
    while (t && (t->finding != finding || t->stack != stack || t->object != hash))
        t = t->next;
    bool is_new = !t && advice.n < MOST && (t = malloc(sizeof(*t)));
    if (is_new) {
        *t = (struct told){*bucket, finding, stack, hash};
        *bucket = t;
        advice.n++;
    }
    lock_put(&advice.lock);
    return is_new;
}

static void put(const char *record)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    long r = append(iw_conf()->check, record, strlen(record));
    if (r && !atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_ASKED, "ANYWARP_CHECK=%s: %s: findings are missing there", iw_conf()->check,
               strerror((int)-r));
}

void iw_advise(enum iw_finding finding, const char *object, const struct iw_stack *stack,
               const char *fmt, ...)
{
    char sentence[512], record[RECORD];
    int saved = errno;
    va_list ap;
    if (!iw_advice_on() || !note(finding, object, stack))
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    int len =
        snprintf(record, sizeof(record), "%s\t%s\t%d\t%s\t%s\t", iw_finding_info(finding)->name,
                 program_invocation_short_name, getpid(), object, sentence);
    if (stack)
        iw_stack_print(stack, record + len, sizeof(record) - 1 - (size_t)len);
    strcat(record, "\n");
    put(record);
    errno = saved;
}

void iw_advice_fork(enum fork_step step)
{
    lock_fork(&advice.lock, step);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice/stack.h"

#include "advice/finding.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096

static struct {
    struct lock lock;
    struct iw_stack *bucket[BUCKETS];
} stacks = {.lock = LOCK(LOCK_STACKS)};

static unsigned bucket_of(const struct iw_stack *s)
{
    uintptr_t hash = s->n;
    for (unsigned i = 0; i < s->n; i++)
        hash = (hash ^ (uintptr_t)s->pc[i]) * 0x9e3779b97f4a7c15;
    return (unsigned)(hash >> 40) % BUCKETS;
}

static bool same(const struct iw_stack *a, const struct iw_stack *b)
{
    return a->n == b->n && !memcmp(a->pc, b->pc, a->n * sizeof(a->pc[0]));
}

static const struct iw_stack *keep(const struct iw_stack *here)
{
    struct iw_stack **bucket = &stacks.bucket[bucket_of(here)];
    lock_get_leaf(&stacks.lock);
    struct iw_stack *s = *bucket;
    while (s && !same(s, here))
        s = s->next;
    if (!s && (s = malloc(sizeof(*s)))) {
        *s = *here;
        s->next = *bucket;
        *bucket = s;
    }
    lock_put(&stacks.lock);
    return s;
}

const struct iw_stack *iw_stack_here(void)
{
    struct iw_stack here;
    int n = backtrace(here.pc, IW_STACK_DEPTH);
    here.n = n > 0 ? (unsigned)n : 0;
    return keep(&here);
}

const struct iw_stack *iw_stack_of_fault(const void *pc)
{
    struct iw_stack here;
    int n = backtrace(here.pc, IW_STACK_DEPTH), handler = 0;
    while (handler < n && here.pc[handler] != pc)
        handler++;
    if (handler == n)
        handler = 0;
    here.n = n > handler ? (unsigned)(n - handler) : 0;
    memmove(here.pc, here.pc + handler, here.n * sizeof(here.pc[0]));
    if (here.n && here.pc[0] == pc)
        here.pc[0] = (char *)here.pc[0] + 1; /* as a return address: behind the instruction */
    return keep(&here);
}

struct frame {
    Dl_info info;
    const struct link_map *map;
    bool found, own;
};

/** A return address stands behind its call, which may be the last instruction of its function. */
static struct frame frame_of(const void *pc)
{
    struct frame f = {0}, here = {0};
    const void *at = (const char *)pc - 1;
    void *map = NULL;
    f.found = dladdr1(at, &f.info, &map, RTLD_DL_LINKMAP) != 0;
    f.map = map;
    here.found = dladdr((void *)(uintptr_t)frame_of, &here.info) != 0;
    f.own = f.found && here.found && f.info.dli_fbase == here.info.dli_fbase;
    return f;
}

static int print(const struct frame *f, const void *pc, char *buf, size_t size)
{
    uintptr_t at = (uintptr_t)pc - 1;
    const char *path = f->found && f->info.dli_fname ? f->info.dli_fname : "";
    if (f->map)
        at -= f->map->l_addr;
    return snprintf(buf, size, "%s%c%lx%c%s%c%c", path, IW_FRAME_FIELD, (unsigned long)at,
                    IW_FRAME_FIELD, f->found && f->info.dli_sname ? f->info.dli_sname : "",
                    IW_FRAME_FIELD, IW_FRAME_END);
}

/** @return how many frames of the library come first */
static unsigned own_frames(const struct iw_stack *stack)
{
    unsigned own = 0;
    while (own < stack->n && frame_of(stack->pc[own]).own)
        own++;
    return own < stack->n ? own : 0;
}

void iw_stack_print(const struct iw_stack *stack, char *buf, size_t size)
{
    unsigned own = own_frames(stack);
    if (size)
        *buf = '\0';
    for (unsigned i = own; i < stack->n; i++) {
        struct frame f = frame_of(stack->pc[i]);
        int len = print(&f, stack->pc[i], buf, size);
        if (len < 0 || (size_t)len >= size) {
            *buf = '\0';
            return;
        }
        buf += len;
        size -= (size_t)len;
    }
}

void iw_stack_fork(enum fork_step step)
{
    lock_fork(&stacks.lock, step);
}

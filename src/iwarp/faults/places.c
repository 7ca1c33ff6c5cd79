/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/places.h"

#include "common/sys.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    struct iw_places *file;
    unsigned n;
    struct {
        uint64_t stack;
        struct iw_place *place;
    } known[IW_PLACES];
} places;

struct iw_places *iw_places_map(const char *path)
{
    long fd = sys_open(path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    void *p = mmap(NULL, sizeof(struct iw_places), PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    sys_close((int)fd);
    return p == MAP_FAILED ? NULL : p;
}

bool iw_places_open(const char *path)
{
    places.file = iw_places_map(path);
    return places.file != NULL;
}

void iw_places_forget(void)
{
    places.n = 0;
}

__attribute__((noinline)) void iw_callers_take(struct iw_callers *s, enum iw_fault fault)
{
    s->n = backtrace(s->frame, IW_STACK_FRAMES);
    s->hash = fault + 1;
    for (int i = 0; i < s->n; i++)
        s->hash = (s->hash ^ (uintptr_t)s->frame[i]) * 0x100000001b3; /* FNV-1a */
}

static bool is_ours(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    return !strncmp(base, "libibverbs.so", strlen("libibverbs.so")) ||
           !strncmp(base, "librdmacm.so", strlen("librdmacm.so"));
}

/** The program itself has no name there. */
static const char *file_of(const struct link_map *map)
{
    static char program[PATH_MAX];
    if (*map->l_name)
        return map->l_name;
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[n < 0 ? 0 : n] = '\0';
    return program;
}

void iw_callers_name(struct iw_callers *s)
{
    bool outside = false;
    char *at = s->text, *end = s->text + sizeof(s->text);
    *at = '\0';
    for (int i = 0; i < s->n; i++) {
        Dl_info in;
        struct link_map *map;
        if (!dladdr1(s->frame[i], &in, (void **)&map, RTLD_DL_LINKMAP) ||
            (!outside && is_ours(map->l_name)))
            continue;
        outside = true;
        int n = snprintf(at, (size_t)(end - at), "%s%s+0x%zx", at == s->text ? "" : " ",
                         file_of(map), (size_t)s->frame[i] - (size_t)map->l_addr);
        if (n < 0 || n >= end - at) {
            *at = '\0';
            return;
        }
        at += n;
    }
}

struct iw_place *iw_place_known(const struct iw_callers *s)
{
    for (unsigned i = 0; i < places.n; i++)
        if (places.known[i].stack == s->hash)
            return places.known[i].place;
    return NULL;
}

struct iw_place *iw_place_new(const struct iw_callers *s, const char *process, enum iw_fault fault,
                              const char *kind)
{
    uint64_t at = __atomic_fetch_add(&places.file->next, 1, __ATOMIC_RELAXED);
    if (at >= IW_PLACES)
        return NULL;
    struct iw_place *p = &places.file->place[at];
    places.known[places.n].stack = s->hash;
    places.known[places.n++].place = p;
    snprintf(p->process, sizeof(p->process), "%s", process);
    snprintf(p->fault, sizeof(p->fault), "%s", iw_fault_info(fault)->name);
    snprintf(p->kind, sizeof(p->kind), "%s", kind);
    snprintf(p->stack, sizeof(p->stack), "%s", s->text);
    return p;
}

void iw_place_called(struct iw_place *p, uint64_t number, uint64_t call)
{
    if (!p->calls++) {
        p->first_number = number;
        p->first_call = call;
    }
    p->last_number = number;
    p->last_call = call;
    __atomic_store_n(&p->whole, 1, __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/chaos.h"

#include "common/append.h"
#include "env/guard.h"
#include "env/log.h"
#include "faults/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS     1024
#define PROCESS_MAX 128
#define LINE        512
#define KINDS       16

struct object {
    struct object *next;
    const void *address;
    const char *kind;
    uint64_t number;
    uint64_t calls[IW_FAULTS];
};

static struct {
    struct lock lock;
    bool broken; /* the plan cannot be understood: nothing happens */
    struct iw_plan plan;
    char process[PROCESS_MAX];
    char lineage[PROCESS_MAX / 2]; /* which child of which child it is */
    uint32_t arguments;            /* a hash of them */
    char full[PROCESS_MAX + 8];    /* with that, as two processes may have one name */
    unsigned forks;
    struct object *bucket[BUCKETS];
    struct {
        const char *name;
        uint64_t count;
    } kinds[KINDS];
    uint64_t next[IW_FAULTS]; /* happens when it is 1; 0: the plan decides */
    char **replay;            /* lines, sorted */
    size_t nreplay;
} chaos = {.lock = LOCK(LOCK_CHAOS)};

_Atomic bool iw_chaos_asked;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_replay(const char *path)
{
    char line[LINE];
    FILE *f = fopen(path, "re");
    if (!f) {
        iw_log(IW_LOG_ASKED, "ANYWARP_CHAOS: replay=%s: cannot be read; no faults", path);
        chaos.broken = true;
        return;
    }
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        char **more = realloc(chaos.replay, (chaos.nreplay + 1) * sizeof(*more));
        if (!more || !(more[chaos.nreplay] = strdup(line))) {
            chaos.replay = more ? more : chaos.replay;
            chaos.broken = true;
            break;
        }
        chaos.replay = more;
        chaos.nreplay++;
    }
    fclose(f);
    if (chaos.replay)
        qsort(chaos.replay, chaos.nreplay, sizeof(*chaos.replay), by_text);
}

static void name_process(void)
{
    snprintf(chaos.process, sizeof(chaos.process), "%.*s%s", PROCESS_MAX / 2 - 1,
             program_invocation_short_name, chaos.lineage);
    for (char *c = chaos.process; *c; c++)
        if (*c <= ' ')
            *c = '_';
    snprintf(chaos.full, sizeof(chaos.full), "%s@%06x", chaos.process, chaos.arguments & 0xffffff);
}

/** Good in a signal handler. @return 0 or a negative errno */
static long put(char line[LINE])
{
    size_t len = strlen(line);
    if (!chaos.plan.log[0])
        return 0;
    line[len++] = '\n';
    return append(chaos.plan.log, line, len);
}

static void put_or_tell(char line[LINE])
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    long r = put(line);
    if (r && !atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_ASKED, "ANYWARP_CHAOS: log=%s: %s: faults are missing there", chaos.plan.log,
               strerror((int)-r));
}

static void hash_arguments(void)
{
    uint8_t bytes[4096];
    long fd = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read((int)fd, bytes, sizeof(bytes));
    chaos.arguments = 0x811c9dc5;
    for (long i = 0; i < n; i++)
        chaos.arguments = (chaos.arguments ^ bytes[i]) * 0x01000193; /* FNV-1a */
    if (fd >= 0)
        sys_close((int)fd);
}

/* In a signal handler: what it needs is there. */
static void tell_crash(int signal)
{
    char line[LINE] = "# crashed ", *end = stpcpy(line + strlen(line), chaos.full);
    *end++ = ' ';
    if (signal > 9)
        *end++ = (char)('0' + signal / 10);
    *end++ = (char)('0' + signal % 10);
    *end = '\0';
    put(line);
}

bool iw_chaos_wants_left(void)
{
    return chaos.plan.ends;
}

void iw_chaos_left(const char *objects)
{
    char line[LINE];
    snprintf(line, sizeof(line) - 1, "# left %s%s", chaos.full, objects);
    put_or_tell(line);
}

static void start(void)
{
    const char *wrong =
        iw_conf()->chaos[0] ? iw_plan_parse(&chaos.plan, iw_conf()->chaos) : NULL; /* all zeros */
    chaos.broken = wrong != NULL;
    if (wrong)
        iw_log(IW_LOG_ASKED, "ANYWARP_CHAOS=%s: %s; no faults", iw_conf()->chaos, wrong);
    hash_arguments();
    name_process();
    if (!wrong && chaos.plan.replay[0])
        read_replay(chaos.plan.replay);
    if (!wrong && chaos.plan.places[0] && !iw_places_open(chaos.plan.places)) {
        iw_log(IW_LOG_ASKED, "ANYWARP_CHAOS: places=%s: cannot be used; no faults",
               chaos.plan.places);
        chaos.broken = true;
    }
    if (chaos.plan.ends)
        iw_guard_tell(tell_crash);
}

static void start_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}

static struct object *find_locked(const void *address, const char *kind)
{
    assert_held(&chaos.lock);
    struct object **bucket = &chaos.bucket[((uintptr_t)address >> 4) % BUCKETS], *o = *bucket;
    while (o && o->address != address)
        o = o->next;
    if (o || !(o = calloc(1, sizeof(*o))))
        return o;
    o->address = address;
    o->kind = kind;
    o->next = *bucket;
    *bucket = o;
    return o;
}

static uint64_t next_number_locked(const char *kind)
{
    assert_held(&chaos.lock);
    for (int i = 0; i < KINDS; i++) {
        if (!chaos.kinds[i].name)
            chaos.kinds[i].name = kind;
        if (!strcmp(chaos.kinds[i].name, kind))
            return ++chaos.kinds[i].count;
    }
    return 0;
}

/* One that was freed may have had the same address. */
void iw_chaos_born(const void *object, const char *kind)
{
    if (!iw_chaos_on())
        return;
    start_once();
    lock_get(&chaos.lock);
    struct object *o = find_locked(object, kind);
    if (o) {
        memset(o->calls, 0, sizeof(o->calls));
        o->kind = kind;
        o->number = next_number_locked(kind);
    }
    lock_put(&chaos.lock);
}

static bool has(const char *line)
{
    return bsearch(&line, chaos.replay, chaos.nreplay, sizeof(*chaos.replay), by_text);
}

/** A log may name the process with its arguments, too. */
static bool replayed(const char *line, enum iw_fault fault, const struct object *o, uint64_t call)
{
    char full[LINE];
    if (!chaos.replay)
        return false;
    iw_plan_line(full, sizeof(full), chaos.full, fault, o->kind, o->number, call);
    return has(line) || has(full);
}

static uint64_t decide_locked(enum iw_fault fault, const struct object *o, uint64_t call)
{
    char line[LINE];
    assert_held(&chaos.lock);
    bool asked = chaos.next[fault] && !--chaos.next[fault];
    if (!asked && !chaos.plan.replay[0] &&
        !iw_plan_decide(&chaos.plan, chaos.process, fault, o->kind, o->number, call))
        return 0;
    iw_plan_line(line, sizeof(line) - 1, chaos.process, fault, o->kind, o->number, call);
    if (!asked && chaos.plan.replay[0] && !replayed(line, fault, o, call))
        return 0;
    iw_log(IW_LOG_INFO, "fault: %s", line);
    put_or_tell(line);
    return iw_plan_detail(&chaos.plan, chaos.process, fault, o->kind, o->number, call);
}

/** Notes where a call is that can fail. */
static void note(enum iw_fault fault, const void *object)
{
    struct iw_callers stack;
    iw_callers_take(&stack, fault);
    lock_get(&chaos.lock);
    struct iw_place *p = iw_place_known(&stack);
    if (!p) {
        lock_put(&chaos.lock);
        iw_callers_name(&stack); /* which asks the loader, and may wait for it */
        lock_get(&chaos.lock);
        p = iw_place_known(&stack);
    }
    struct object *o = find_locked(object, object ? "other" : "process");
    if (o && !p)
        p = iw_place_new(&stack, chaos.full, fault, o->kind);
    uint64_t call = o ? ++o->calls[fault] : 0;
    if (p && o)
        iw_place_called(p, o->number, call);
    lock_put(&chaos.lock);
}

static uint64_t ask(enum iw_fault fault, const void *object, uint64_t call)
{
    uint64_t hit = 0;
    start_once();
    if (chaos.broken)
        return 0;
    if (chaos.plan.places[0]) {
        if (iw_fault_info(fault)->error)
            note(fault, object);
        return 0;
    }
    lock_get(&chaos.lock);
    struct object *o = find_locked(object, object ? "other" : "process");
    if (o)
        hit = decide_locked(fault, o, call ? call : ++o->calls[fault]);
    lock_put(&chaos.lock);
    return hit;
}

uint64_t iw_chaos_hit(enum iw_fault fault, const void *object)
{
    return ask(fault, object, 0);
}

uint64_t iw_chaos_hit_at(enum iw_fault fault, const void *object, uint64_t call)
{
    return ask(fault, object, call);
}

void iw_chaos_next(enum iw_fault fault, unsigned skip)
{
    start_once();
    lock_get(&chaos.lock);
    if (fault == IW_FAULTS)
        memset(chaos.next, 0, sizeof(chaos.next));
    else
        chaos.next[fault] = (uint64_t)skip + 1;
    lock_put(&chaos.lock);
    atomic_store(&iw_chaos_asked, true);
}

/* The child has a name of its own: the first one of rping is rping.1. No knob is read here. */
void iw_chaos_fork(enum fork_step step)
{
    if (step == FORK_CHILD) {
        char child[16];
        snprintf(child, sizeof(child), ".%u", chaos.forks + 1);
        strncat(chaos.lineage, child, sizeof(chaos.lineage) - strlen(chaos.lineage) - 1);
        chaos.forks = 0;
        name_process();
        iw_places_forget();
    } else if (step == FORK_PARENT) {
        chaos.forks++;
    }
    lock_fork(&chaos.lock, step);
}

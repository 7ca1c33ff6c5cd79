/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/stats_file.h"

#include "common/sys.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROC_STAT_MAX 1024
#define ANY_OTHER     077 /* rights of anybody but the owner */

bool stats_dir(const char *knob, unsigned i, char dir[STATS_PATH_MAX])
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    bool named = knob && knob[0] == '/';
    if (!named && (!runtime || runtime[0] != '/'))
        i++;
    int n = -1;
    if (named && i == 0)
        n = snprintf(dir, STATS_PATH_MAX, "%s", knob);
    else if (!named && i == 0)
        n = snprintf(dir, STATS_PATH_MAX, "%s/anywarp", runtime);
    else if (!named && i == 1)
        n = snprintf(dir, STATS_PATH_MAX, "/dev/shm/anywarp-%u", (unsigned)geteuid());
    return n > 0 && n < STATS_PATH_MAX;
}

int stats_dir_open(const char *dir)
{
    struct stat st;
    long fd = sys_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    if (fstat((int)fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & ANY_OTHER))
        return (int)fd;
    sys_close((int)fd);
    return -EPERM;
}

/** The start of a process by its stat file; 0: there is none, or it has ended. */
static uint64_t start_of(const char *path)
{
    char text[PROC_STAT_MAX + 1], state = 'X';
    uint64_t start = 0;
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read((int)fd, text, PROC_STAT_MAX);
    if (fd >= 0)
        sys_close((int)fd);
    text[n < 0 ? 0 : n] = 0;
    const char *p = strrchr(text, ')'); /* the name before it may hold anything */
    if (!p || sscanf(p,
                     ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                     "%*d %" SCNu64,
                     &state, &start) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : start;
}

static uint64_t namespace_here(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

struct stats_owner stats_self(void)
{
    return (struct stats_owner){
        .pid = (uint32_t)getpid(), .start = start_of("/proc/self/stat"), .ns = namespace_here()};
}

void stats_name(char name[STATS_NAME_MAX], const struct stats_owner *o)
{
    snprintf(name, STATS_NAME_MAX, "%" PRIu32 "-%" PRIu64 "-%" PRIu64, o->pid, o->start, o->ns);
}

bool stats_name_parse(const char *name, struct stats_owner *o)
{
    char again[STATS_NAME_MAX];
    if (sscanf(name, "%" SCNu32 "-%" SCNu64 "-%" SCNu64, &o->pid, &o->start, &o->ns) != 3)
        return false;
    stats_name(again, o);
    return !strcmp(again, name);
}

enum stats_life stats_life(const struct stats_owner *o)
{
    char path[32];
    uint64_t ns = namespace_here();
    if (!ns || ns != o->ns || !o->start)
        return STATS_UNKNOWN;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", o->pid);
    return start_of(path) == o->start ? STATS_ALIVE : STATS_ENDED;
}

struct ended {
    char name[STATS_NAME_MAX];
    struct timespec at;
};

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/** Puts @p e among the newest @p keep, newest first. @return the one that has to go, or NULL */
static const struct ended *sort_in(struct ended *kept, unsigned *n, unsigned keep, struct ended *e)
{
    unsigned at = *n;
    while (at > 0 && is_older(&kept[at - 1].at, &e->at))
        at--;
    if (at == keep)
        return e;
    struct ended last = kept[keep - 1];
    bool full = *n == keep;
    unsigned move = (full ? keep - 1 : *n) - at;
    memmove(&kept[at + 1], &kept[at], move * sizeof(*kept));
    kept[at] = *e;
    *n += !full;
    if (full)
        *e = last;
    return full ? e : NULL;
}

unsigned stats_evict(int fd, unsigned keep)
{
    struct ended kept[STATS_KEEP], e;
    unsigned n = 0, gone = 0;
    int own = (int)sys_openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *d = own < 0 ? NULL : fdopendir(own);
    for (struct dirent *f; d && (f = readdir(d));) {
        struct stats_owner o;
        struct stat st;
        if (!stats_name_parse(f->d_name, &o) || stats_life(&o) != STATS_ENDED ||
            fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        stats_name(e.name, &o);
        e.at = st.st_mtim;
        const struct ended *out = keep ? sort_in(kept, &n, keep, &e) : &e;
        if (out)
            gone += unlinkat(dirfd(d), out->name, 0) == 0;
    }
    if (d)
        closedir(d);
    else if (own >= 0)
        sys_close(own);
    return gone;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The hierarchy that limits memory; of both versions one alone does. */
struct hierarchy {
    const char *file;
    char group[PATH_MAX]; /* of this process; empty: it has none there */
    char mounted_group[PATH_MAX];
    char mounted_at[PATH_MAX]; /* empty: nowhere */
};

static void copy(char to[PATH_MAX], const char *from)
{
    if (strlen(from) < PATH_MAX)
        memcpy(to, from, strlen(from) + 1);
}

/** Whether @p word is one of those that commas are between. */
static bool lists(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = words; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, word, len) && (p[len] == ',' || !p[len]))
            return true;
    }
    return false;
}

/** "4:memory:/group", of version 2 "0::/group". */
static void read_group(char *line, struct hierarchy h[2])
{
    char *controllers = strchr(line, ':'), *group;
    group = controllers ? strchr(++controllers, ':') : NULL;
    if (!group)
        return;
    *group++ = 0;
    if (!*controllers)
        copy(h[0].group, group);
    else if (lists(controllers, "memory"))
        copy(h[1].group, group);
}

/** "31 30 0:28 /group /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory". */
static void read_mount(char *line, struct hierarchy h[2])
{
    char *part[5], *rest, *end = strstr(line, " - ");
    if (!end)
        return;
    for (int i = 0; i < 5; i++)
        part[i] = strtok_r(i ? NULL : line, " ", &rest);
    char *type = strtok_r(end + 3, " ", &rest), *from = strtok_r(NULL, " ", &rest),
         *options = strtok_r(NULL, " ", &rest);
    if (!part[4] || !type || !from || !options)
        return;
    bool two = !strcmp(type, "cgroup2"), one = !strcmp(type, "cgroup") && lists(options, "memory");
    if (!one && !two)
        return;
    copy(h[one].mounted_group, part[3]);
    copy(h[one].mounted_at, part[4]);
}

static void each_line(const char *root, const char *name,
                      void (*f)(char *line, struct hierarchy h[2]), struct hierarchy h[2])
{
    char path[PATH_MAX], *line = NULL;
    size_t size = 0;
    if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
        return;
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &size, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        f(line, h);
    }
    free(line);
    if (file)
        fclose(file);
}

/** What is below the group that is mounted; of one elsewhere nothing is seen. */
static const char *below(const struct hierarchy *h)
{
    size_t len = strlen(h->mounted_group);
    if (!strcmp(h->mounted_group, "/"))
        len = 0;
    bool is = !strncmp(h->group, h->mounted_group, len) &&
              (h->group[len] == '/' || !h->group[len]) && !strstr(h->group, "/..");
    return is ? h->group + len : "";
}

/** "max" is no number. */
static uint64_t limit_in(const char *folder, const char *file)
{
    char path[PATH_MAX];
    uint64_t limit = UINT64_MAX;
    if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path))
        return UINT64_MAX;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%" SCNu64, &limit) != 1)
        limit = UINT64_MAX;
    if (f)
        fclose(f);
    return limit;
}

static uint64_t lowest(const char *root, const struct hierarchy *h)
{
    char folder[PATH_MAX];
    uint64_t least = UINT64_MAX;
    size_t top = strlen(root) + strlen(h->mounted_at);
    if (!*h->mounted_at || !*h->group ||
        snprintf(folder, sizeof(folder), "%s%s%s", root, h->mounted_at, below(h)) >=
            (int)sizeof(folder))
        return UINT64_MAX;
    for (;;) {
        uint64_t limit = limit_in(folder, h->file);
        least = limit < least ? limit : least;
        char *last = strrchr(folder + top, '/');
        if (!last)
            return least;
        *last = 0;
    }
}

uint64_t iw_cgroup_memory(const char *root)
{
    int saved = errno;
    struct hierarchy *h = calloc(2, sizeof(*h));
    if (!h)
        return UINT64_MAX;
    h[0].file = "memory.max";
    h[1].file = "memory.limit_in_bytes";
    each_line(root, "/proc/self/cgroup", read_group, h);
    each_line(root, "/proc/self/mountinfo", read_mount, h);
    uint64_t two = lowest(root, &h[0]), one = lowest(root, &h[1]);
    free(h);
    errno = saved;
    return one < two ? one : two;
}

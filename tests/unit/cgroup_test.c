/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit of memory, from files in a folder as a system has them. */
#include "env/cgroup.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NONE     UINT64_MAX
#define FILES    4
#define GROUP    "/proc/self/cgroup"
#define MOUNTS   "/proc/self/mountinfo"
#define TWO      "24 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define MEMORY   "31 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define NO_LIMIT "9223372036854771712\n" /* of version 1 */

static char root[] = "/tmp/cgroup_test.XXXXXX";

static const struct {
    const char *name;
    uint64_t limit;
    struct {
        const char *path, *text;
    } files[FILES];
} rows[] = {
    {"nothing is known", NONE, {{0}}},
    {"version 2",
     1048576,
     {{GROUP, "0::/a/b\n"}, {MOUNTS, TWO}, {"/sys/fs/cgroup/a/b/memory.max", "1048576\n"}}},
    {"no limit",
     NONE,
     {{GROUP, "0::/a/b\n"}, {MOUNTS, TWO}, {"/sys/fs/cgroup/a/b/memory.max", "max\n"}}},
    {"that of a parent is lower",
     5,
     {{GROUP, "0::/a/b\n"},
      {MOUNTS, TWO},
      {"/sys/fs/cgroup/a/b/memory.max", "7\n"},
      {"/sys/fs/cgroup/a/memory.max", "5\n"}}},
    {"that of a parent is higher",
     7,
     {{GROUP, "0::/a/b\n"},
      {MOUNTS, TWO},
      {"/sys/fs/cgroup/a/b/memory.max", "7\n"},
      {"/sys/fs/cgroup/a/memory.max", "9\n"}}},
    {"in a namespace of groups",
     6,
     {{GROUP, "0::/\n"}, {MOUNTS, TWO}, {"/sys/fs/cgroup/memory.max", "6\n"}}},
    {"outside of the namespace",
     6,
     {{GROUP, "0::/../../other\n"}, {MOUNTS, TWO}, {"/sys/fs/cgroup/memory.max", "6\n"}}},
    {"only a part is mounted",
     4,
     {{GROUP, "0::/docker/1/x\n"},
      {MOUNTS, "24 1 0:22 /docker/1 /sys/fs/cgroup rw shared:1 - "
               "cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/x/memory.max", "4\n"}}},
    {"another part is mounted",
     3,
     {{GROUP, "0::/docker/12\n"},
      {MOUNTS, "24 1 0:22 /docker/1 /sys/fs/cgroup rw - cgroup2 "
               "cgroup2 rw\n"},
      {"/sys/fs/cgroup/memory.max", "3\n"},
      {"/sys/fs/cgroup/2/memory.max", "1\n"}}},
    {"not mounted",
     NONE,
     {{GROUP, "0::/a\n"},
      {MOUNTS, "25 1 0:5 / /sys rw - sysfs sysfs rw\n"},
      {"/sys/fs/cgroup/a/memory.max", "1\n"}}},
    {"version 1",
     4096,
     {{GROUP, "5:cpu,cpuacct:/c\n4:memory:/a\n0::/\n"},
      {MOUNTS, "32 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" MEMORY},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT}}},
    {"version 1, its controller with another",
     11,
     {{GROUP, "4:blkio,memory:/a\n"},
      {MOUNTS, "31 30 0:28 / /m rw,memory - cgroup cgroup rw,blkio,memory\n"},
      {"/m/a/memory.limit_in_bytes", "11\n"}}},
    {"another controller's mount",
     NONE,
     {{GROUP, "4:memory:/a\n"},
      {MOUNTS, "31 30 0:28 / /m rw,memory - cgroup cgroup rw,memory_recall\n"},
      {"/m/a/memory.limit_in_bytes", "11\n"}}},
    {"both versions",
     12,
     {{GROUP, "4:memory:/a\n0::/a\n"},
      {MOUNTS, MEMORY "37 30 0:37 / /u rw - cgroup2 c rw\n"},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "12\n"},
      {"/u/a/memory.max", "max\n"}}},
    {"garbage",
     NONE,
     {{GROUP, "\n:\n::\n4:memory\n0::\nmemory:/a\n"},
      {MOUNTS, "\n - \n1 2 3 4\n1 2 3 4 5 - \n1 - cgroup2\n1 2 3 4 5 - cgroup2 x\n" TWO},
      {"/sys/fs/cgroup/memory.max", "1\n"}}},
    {"a limit that is none",
     NONE,
     {{GROUP, "0::/a\n"}, {MOUNTS, TWO}, {"/sys/fs/cgroup/a/memory.max", "-\n"}}},
};

/** Makes a file, and the folders that it is in. */
static void make(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void each_system(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        strcpy(root, "/tmp/cgroup_test.XXXXXX");
        assert_non_null(mkdtemp(root));
        for (unsigned k = 0; k < FILES && rows[i].files[k].path; k++)
            make(rows[i].files[k].path, rows[i].files[k].text);
        errno = EDOM;
        uint64_t limit = iw_cgroup_memory(root);
        if (limit != rows[i].limit)
            print_error("%s: %llu\n", rows[i].name, (unsigned long long)limit);
        assert_true(limit == rows[i].limit);
        assert_int_equal(errno, EDOM);
        nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

/** Whatever it is: a limit, or none. */
static void this_system(void **state)
{
    (void)state;
    assert_true(iw_cgroup_memory("") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_system),
        cmocka_unit_test(this_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

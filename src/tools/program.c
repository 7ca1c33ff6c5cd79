/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/program.h"

#include "tools/tool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static char *join(const char *folder, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", *folder ? folder : ".", name) < 0)
        tool_die(TOOL_FAILED, "out of memory");
    return path;
}

char *program_search(const char *name)
{
    const char *path = getenv("PATH");
    char *list = strdup(path ? path : "/usr/local/bin:/usr/bin:/bin"), *rest = list, *best = NULL;
    if (!list)
        tool_die(TOOL_FAILED, "out of memory");
    for (char *folder; (folder = strsep(&rest, ":"));) {
        char *candidate = join(folder, name);
        bool usable = is_file(candidate) && access(candidate, X_OK) == 0;
        if (usable || (!best && is_file(candidate))) {
            free(best);
            best = candidate;
        } else {
            free(candidate);
        }
        if (usable)
            break;
    }
    free(list);
    return best;
}

char *program_find(const char *name)
{
    char *path = strchr(name, '/') ? strdup(name) : program_search(name);
    if (!path)
        tool_die(TOOL_NOT_FOUND, "%s: command not found", name);
    if (access(path, F_OK) != 0)
        tool_die(TOOL_NOT_FOUND, "%s: %s", path,
                 errno == ENOENT ? "no such file" : strerror(errno));
    if (is_folder(path))
        tool_die(TOOL_CANNOT_RUN, "%s: is a directory", path);
    if (access(path, X_OK) != 0)
        tool_die(TOOL_CANNOT_RUN, "%s: not executable", path);
    return path;
}

const char *program_privilege(const char *path)
{
    struct stat st;
    struct statvfs fs;
    if (stat(path, &st) != 0)
        return NULL;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return NULL;
    if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID))
        return NULL;
    if ((st.st_mode & S_ISUID) && st.st_uid != geteuid())
        return "is setuid";
    if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid())
        return "is setgid";
    if (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        return "has file capabilities";
    return NULL;
}

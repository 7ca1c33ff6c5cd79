/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/folders.h"

#include "tools/tool.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *tool_libraries = tool_libraries_at;
const char *tool_programs = tool_programs_at;

/** The folder of this program, without a slash at its end. */
static void own_folder(char folder[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (n <= 0)
        tool_die(TOOL_FAILED, "/proc/self/exe tells where anywarp is, and cannot be read");
    folder[n] = '\0';
    *strrchr(folder, '/') = '\0';
}

/** "/a/bin" and "../lib/x" become "/a/lib/x". */
static void resolve(char result[PATH_MAX], const char *path, const char *self)
{
    static const char up[] = "../";
    size_t len = strlen(self);
    for (; !strncmp(path, up, strlen(up)); path += strlen(up))
        while (len > 0 && self[--len] != '/')
            ;
    if (snprintf(result, PATH_MAX, "%.*s/%s", (int)len, self, path) >= PATH_MAX)
        tool_die(TOOL_FAILED, "%s: the path is too long", self);
}

/** Whether the loader would put something else in place of a part of @p path: ld.so(8) */
static bool has_token(const char *path)
{
    static const char *const tokens[] = {"ORIGIN", "LIB", "PLATFORM"};
    for (const char *s = path; (s = strchr(s, '$'));) {
        s += s[1] == '{' ? 2 : 1;
        for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
            if (!strncmp(s, tokens[i], strlen(tokens[i])))
                return true;
    }
    return false;
}

bool tool_is_word(const char *path, const char *separators)
{
    return !path[strcspn(path, separators)] && !has_token(path);
}

void tool_check_folder(const char *path, const char *separators, const char *names)
{
    if (path[strcspn(path, separators)])
        tool_die(TOOL_FAILED,
                 "%s: move anywarp to a folder without %s in its name: the loader takes them for "
                 "the end of it",
                 path, names);
    if (has_token(path))
        tool_die(TOOL_FAILED,
                 "%s: move anywarp to a folder without $ORIGIN, $LIB or $PLATFORM in its name: the "
                 "loader puts another name there",
                 path);
}

void tool_find_folders(void)
{
    static char libraries[PATH_MAX], programs[PATH_MAX];
    char self[PATH_MAX];
    if (*tool_libraries_at != '/') {
        own_folder(self);
        resolve(libraries, tool_libraries_at, self);
        resolve(programs, tool_programs_at, self);
        tool_libraries = libraries;
        tool_programs = programs;
    }
    tool_check_folder(tool_libraries, ":;", "':' and ';'");
}

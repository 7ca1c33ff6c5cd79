/* SPDX-License-Identifier: BSD-2-Clause */
/* What "anywarp run --system-libraries" needs: the door, the system's two libraries, a provider. */
#include "tools/doctor.h"
#include "tools/tool.h"

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DOOR "libanywarp-uverbs-preload.so"

/**
 * Where the loader finds a library of this name, for a program that has no search path of its own,
 * as this one may have. @return false: nowhere
 */
static bool find_library(const char *name, char path[PATH_MAX])
{
    char command[256], line[PATH_MAX + 256], soname[128], at[PATH_MAX];
    bool there = false;
    snprintf(command, sizeof(command),
             "LD_TRACE_LOADED_OBJECTS=1 LD_PRELOAD=%s /bin/sh 2>/dev/null", name);
    fflush(stdout);
    FILE *f = popen(command, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, " %127s => %4095s", soname, at) == 2 && !strcmp(soname, name)) {
            memcpy(path, at, sizeof(at));
            there = true;
        }
    }
    if (f)
        pclose(f);
    return there;
}

/** What the door says when a program begins, which is nothing if it has made its folder. */
static void try_door(const char *path)
{
    static const char ours[] = "anywarp: ";
    char command[2 * PATH_MAX], line[PATH_MAX + 256];
    snprintf(command, sizeof(command), "LD_PRELOAD='%s%s%s' /bin/true 2>&1", tool_preload,
             *tool_preload ? ":" : "", path);
    fflush(stdout);
    FILE *f = popen(command, "re");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, ours, strlen(ours)))
            doctor_say(DOCTOR_FAIL, "XDG_RUNTIME_DIR names a folder of this user's, or none", "%s",
                       line + strlen(ours));
    }
    if (f)
        pclose(f);
}

static void check_door(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", tool_libraries, DOOR);
    if (access(path, R_OK) != 0) {
        doctor_say(DOCTOR_FAIL, "install anywarp again, or run make in its build tree",
                   "%s is missing", path);
        return;
    }
    doctor_say(DOCTOR_GOOD, NULL, "%s is there", path);
    try_door(path);
}

/* Where rdma-core has its providers: beside the library, in a folder of its name. */
static void check_provider(const char *library)
{
    char pattern[PATH_MAX + 64];
    const char *slash = strrchr(library, '/');
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%.*s/libibverbs/libipathverbs-rdmav*.so",
             slash ? (int)(slash - library) : 0, library);
    if (glob(pattern, 0, NULL, &found) == 0)
        doctor_say(DOCTOR_GOOD, NULL, "its provider for anywarp is %s", found.gl_pathv[0]);
    else
        doctor_say(DOCTOR_FAIL,
                   "install it: it is in the package ibverbs-providers (Debian), libibverbs (RHEL, "
                   "SUSE) or rdma-core (Arch)",
                   "there is no %s, the provider that does all its work by commands", pattern);
    globfree(&found);
}

static void check_library(const char *name)
{
    char path[PATH_MAX];
    if (!find_library(name, path)) {
        doctor_say(DOCTOR_FAIL, "install it, or link the program with it statically",
                   "the loader does not find %s", name);
    } else if (strstr(path, tool_libraries)) {
        doctor_say(DOCTOR_FAIL, "unset LD_LIBRARY_PATH, which \"anywarp env\" has set",
                   "%s is found in %s, which is anywarp's", name, path);
    } else {
        doctor_say(DOCTOR_GOOD, NULL, "the system's %s is %s", name, path);
        if (!strcmp(name, "libibverbs.so.1"))
            check_provider(path);
    }
}

void doctor_system(void)
{
    check_door();
    check_library("libibverbs.so.1");
    check_library("librdmacm.so.1");
}

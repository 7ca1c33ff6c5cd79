/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/sys.h"
#include "env/conf.h"
#include "tools/doctor.h"
#include "tools/pair.h"
#include "tools/tool.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between the entries of ANYWARP_DEVICES. */
#define WORD_BREAK " \t,"

/** Whether a preloaded library would stand before ours. */
static bool gets_between(const char *list)
{
    static const char *const names[] = {"libibverbs", "librdmacm", "librspreload"};
    bool found = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        found |= strstr(list, names[i]) != NULL;
    return found && !strstr(list, tool_libraries);
}

static void check_preload(void)
{
    const char *list = getenv("LD_PRELOAD");
    if (list && gets_between(list))
        doctor_say(DOCTOR_WARN, "unset LD_PRELOAD, unless that is what you want",
                   "LD_PRELOAD=%s comes before anywarp's libraries", list);
    char line[1024];
    FILE *f = fopen("/etc/ld.so.preload", "re");
    while (f && fgets(line, sizeof(line), f))
        if (gets_between(line))
            doctor_say(DOCTOR_FAIL, "remove the line from the file",
                       "/etc/ld.so.preload puts %.*s before anywarp's libraries",
                       (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
}

/** A shell in which "anywarp env" was used, and then something came before it. */
static void check_order(void)
{
    const char *value = getenv("LD_LIBRARY_PATH");
    if (!value || !strstr(value, tool_libraries))
        return;
    char *list = strdup(value), *rest = list;
    for (const char *folder; list && (folder = strsep(&rest, ":"));) {
        char path[PATH_MAX];
        if (!strcmp(folder, tool_libraries))
            break;
        snprintf(path, sizeof(path), "%s/libibverbs.so.1", folder);
        if (access(path, F_OK) == 0)
            doctor_say(DOCTOR_WARN, "eval \"$(anywarp env)\" once more, or use anywarp run",
                       "%s comes before anywarp's libraries in the LD_LIBRARY_PATH of this shell",
                       path);
    }
    free(list);
}

/** Raw, as libanywarp-paths.so may be preloaded, which adds anywarp's own devices. */
static DIR *open_folder(const char *path)
{
    long fd = sys_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir((int)fd);
    if (fd >= 0 && !dir)
        sys_close((int)fd);
    return dir;
}

static void check_hidden(const char *sysfs)
{
    char path[PATH_MAX], names[512] = "";
    snprintf(path, sizeof(path), "%s/class/infiniband", sysfs);
    DIR *dir = open_folder(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                     *names ? ", " : "", e->d_name);
    if (dir)
        closedir(dir);
    if (*names)
        doctor_say(DOCTOR_NOTE, "to use them, run the program without anywarp",
                   "programs on anywarp do not see the RDMA devices of this machine: %s", names);
}

static void check_device(const struct pair *p, struct ibv_device *device)
{
    struct ibv_port_attr port = {0};
    struct ibv_context *ctx = p->open_device(device);
    const char *name = p->get_device_name(device);
    if (!ctx || p->query_port(ctx, 1, (void *)&port) != 0)
        doctor_say(DOCTOR_FAIL, "VERBS_LOG_LEVEL=2 anywarp devices may say more",
                   "the device %s cannot be used: %s", name, strerror(errno));
    else if (port.state != IBV_PORT_ACTIVE)
        doctor_say(DOCTOR_WARN, "ip link shows the interfaces; ANYWARP_DEVICES names them",
                   "the device %s is down: its interface is not up, or there is none", name);
    else
        doctor_say(DOCTOR_GOOD, NULL, "programs see the %s device %s",
                   device->transport_type == IBV_TRANSPORT_IWARP ? "iWARP" : "RoCE", name);
    if (ctx)
        p->close_device(ctx);
}

static int count_words(const char *list)
{
    int n = 0;
    for (; *list; list += strcspn(list, WORD_BREAK)) {
        list += strspn(list, WORD_BREAK);
        n += *list != '\0';
    }
    return n;
}

static void check_devices(const struct pair *p)
{
    int n = 0;
    const char *folder = getenv("IBV_CONFIG_DIR"), *wanted = getenv("ANYWARP_DEVICES");
    struct ibv_device **list = p->get_device_list(&n);
    for (int i = 0; i < n; i++)
        check_device(p, list[i]);
    if (list)
        p->free_device_list(list);
    if (n == 0)
        doctor_say(DOCTOR_FAIL, "unset IBV_CONFIG_DIR, or run: anywarp run ofedctrl -l",
                   "there is no device: no *.driver file in IBV_CONFIG_DIR=%s has a line \"driver "
                   "anywarp\"",
                   folder ? folder : "");
    else if (wanted && *wanted && (count_words(wanted) != n || !strchr(wanted, '=')))
        doctor_say(DOCTOR_WARN, "write name=interface for each; VERBS_LOG_LEVEL=2 names them",
                   "entries of ANYWARP_DEVICES=%s are not understood, and ignored", wanted);
}

static void check_variable(const char *name, const char *value)
{
    size_t n;
    const struct iw_knob *k = iw_knobs(&n), *end = k + n;
    while (k < end && strcmp(k->name, name) != 0)
        k++;
    if (k < end && !iw_knob_legal(k, value))
        doctor_say(DOCTOR_WARN, k->values, "%s=%s is not understood, and ignored; legal:", name,
                   value);
    if (k == end && !strncmp(name, "ANYWARP_", strlen("ANYWARP_")))
        doctor_say(DOCTOR_WARN, "anywarp config has the list",
                   "%s is set, but there is no such variable", name);
}

static void check_variables(void)
{
    for (char **e = environ; *e; e++) {
        char name[64];
        size_t len = strcspn(*e, "=");
        if (len >= sizeof(name) || !(*e)[len])
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)len, *e);
        check_variable(name, *e + len + 1);
    }
}

void doctor_installation(void)
{
    struct pair p;
    const char *why = pair_load(&p);
    if (why) {
        doctor_say(DOCTOR_FAIL, "install anywarp again, or run make in its build tree",
                   "anywarp's libraries do not load: %s", why);
    } else {
        doctor_say(DOCTOR_GOOD, NULL, "libibverbs.so.1 and librdmacm.so.1 of %s load",
                   tool_libraries);
        check_devices(&p);
        check_hidden(p.get_sysfs_path());
    }
    check_preload();
    check_order();
    check_variables();
}

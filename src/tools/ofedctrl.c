/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofedctrl: switches the device on and off. Where AIX loads and unloads a kernel extension, the
 * libraries look for a driver file in the directory that IBV_CONFIG_DIR names: this program writes
 * it, removes it, and reports what programs of this environment get.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

static const char usage[] = "usage: ofedctrl [-k EXTENSION] -l | -u | -q\n"
                            "       ofedctrl -h\n"
                            "\n"
                            "  -k EXTENSION   ofed_core or anywarp, with or without a path\n"
                            "  -l             load: let programs have the device\n"
                            "  -u             unload\n"
                            "  -q             say whether it is loaded\n"
                            "  -h             print this\n";

static const char line[] = "driver anywarp\n";
static char file[4096]; /* the driver file; empty without IBV_CONFIG_DIR */

static int failed(const char *what, int err)
{
    fprintf(stderr, "ofedctrl: %s: %s\n", what, strerror(err));
    return 1;
}

static bool loaded(void)
{
    int n = 0;
    struct ibv_device **devices = ibv_get_device_list(&n);
    if (devices)
        ibv_free_device_list(devices);
    return n > 0;
}

static int load(void)
{
    if (loaded()) {
        puts("anywarp is already loaded");
        return 0;
    }
    if (!*file) {
        fputs("ofedctrl: there is no device, and IBV_CONFIG_DIR is not set: see anywarp doctor\n",
              stderr);
        return 1;
    }
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return failed(file, errno);
    bool written = write(fd, line, sizeof(line) - 1) == (ssize_t)sizeof(line) - 1;
    if (close(fd) != 0 || !written)
        return failed(file, errno);
    if (!loaded()) {
        fprintf(stderr, "ofedctrl: %s is written, but there is no device: see anywarp doctor\n",
                file);
        return 1;
    }
    puts("anywarp is loaded");
    return 0;
}

static int unload(void)
{
    if (!*file) {
        fputs("ofedctrl: IBV_CONFIG_DIR is not set, so the device is always there;\n"
              "set it to a directory to switch the device on and off\n",
              stderr);
        return 1;
    }
    if (unlink(file) != 0 && errno != ENOENT)
        return failed(file, errno);
    if (loaded()) {
        fprintf(stderr,
                "ofedctrl: another *.driver file beside %s has the line \"driver anywarp\"\n",
                file);
        return 1;
    }
    puts("anywarp is not loaded");
    return 0;
}

static int query(void)
{
    bool on = loaded();
    puts(on ? "anywarp is loaded" : "anywarp is not loaded");
    return on ? 0 : 1;
}

/** Whether the extension is ours: AIX's default is /usr/lib/drivers/ofed_core. */
static bool known(const char *extension)
{
    const char *slash = strrchr(extension, '/');
    const char *name = slash ? slash + 1 : extension;
    return !strcmp(name, "ofed_core") || !strcmp(name, "anywarp");
}

static int misuse(void)
{
    fputs(usage, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const char *folder = secure_getenv("IBV_CONFIG_DIR");
    int (*action)(void) = NULL;
    for (int c; (c = getopt(argc, argv, "k:luqh")) != -1;) {
        if (c == 'h')
            return fputs(usage, stdout) < 0;
        if (c == '?' || (c != 'k' && action))
            return misuse();
        if (c != 'k')
            action = c == 'l' ? load : c == 'u' ? unload : query;
        else if (!known(optarg))
            return failed(optarg, ENOENT);
    }
    if (!action || optind < argc)
        return misuse();
    if (folder && *folder &&
        (size_t)snprintf(file, sizeof(file), "%s/anywarp.driver", folder) >= sizeof(file))
        return failed("IBV_CONFIG_DIR", ENAMETOOLONG);
    return action();
}

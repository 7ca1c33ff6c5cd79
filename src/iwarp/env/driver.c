/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/driver.h"

#include "common/sys.h"
#include "env/log.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME "anywarp"

static bool line_names_us(char *line)
{
    char *rest;
    const char *verb = strtok_r(line, " \t\n", &rest);
    const char *name = strtok_r(NULL, " \t\n", &rest);
    return verb && name && strcmp(verb, "driver") == 0 && strcmp(name, NAME) == 0;
}

static bool file_names_us(int dir, const char *file)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO of that name must not hang the program */
    int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    FILE *f = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (!f) {
        sys_close(fd);
        return false;
    }
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    while (!found && getline(&line, &size, f) >= 0)
        found = line_names_us(line);
    free(line);
    fclose(f);
    return found;
}

static bool is_driver_file(const char *name)
{
    size_t len = strlen(name);
    return name[0] != '.' && len > 7 && strcmp(name + len - 7, ".driver") == 0;
}

bool iw_driver_enabled(void)
{
    const char *path = secure_getenv("IBV_CONFIG_DIR");
    if (!path || !*path)
        return true;
    DIR *dir = opendir(path);
    bool found = false;
    if (!dir)
        iw_log(IW_LOG_ASKED, "IBV_CONFIG_DIR=%s cannot be read: no device", path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));)
        found = is_driver_file(e->d_name) && file_names_us(dirfd(dir), e->d_name);
    if (dir)
        closedir(dir);
    return found;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that gained privileges when it was started: variables of whoever started it lead it to
 * no file. What the C library says of privileges is said here instead, to the libraries too. Each
 * case runs in a child of its own, as the environment is read once, and with no privileges as well:
 * there the variable counts.
 */
#include "pair.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 20
#define VISIBLE __attribute__((visibility("default")))

const char *ibv_get_sysfs_path(void);

static bool privileged;

VISIBLE char *secure_getenv(const char *name)
{
    return privileged ? NULL : getenv(name);
}

VISIBLE unsigned long getauxval(unsigned long type)
{
    if (type == AT_SECURE)
        return privileged;
    unsigned long (*real)(unsigned long) = dlsym(RTLD_NEXT, "getauxval");
    return real(type);
}

static char folder[PATH_MAX]; /* of this test, empty between cases */

/** Whether there is something in the folder. */
static bool written(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n > 2;
}

static bool a_connection_writes(void)
{
    static struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    pair_close(&p, 1);
    return written();
}

static bool no_device(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    ibv_free_device_list(list);
    return n == 0;
}

static bool another_sysfs(void)
{
    return !strcmp(ibv_get_sysfs_path(), folder);
}

static const struct {
    const char *variable, *file; /* in the folder; NULL: the folder itself */
    bool (*counts)(void);
} rows[] = {
    {"VERBS_LOG_FILE", "log", a_connection_writes},
    {"IBV_CONFIG_DIR", NULL, no_device},
    {"SYSFS_PATH", NULL, another_sysfs},
    {"ANYWARP_PCAP", "capture", a_connection_writes},
    {"ANYWARP_STATS", NULL, a_connection_writes},
    {"XDG_RUNTIME_DIR", NULL, a_connection_writes},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/** @return whether the variable counts */
static int child(size_t row)
{
    char value[PATH_MAX + 16];
    snprintf(value, sizeof(value), "%s/%s", folder, rows[row].file ? rows[row].file : "");
    if (!rows[row].file)
        value[strlen(value) - 1] = '\0';
    alarm(LIMIT_S);
    for (size_t i = 0; i < ROWS; i++)
        unsetenv(rows[i].variable);
    setenv("VERBS_LOG_LEVEL", "4", 1);
    setenv(rows[row].variable, value, 1);
    if (!freopen("/dev/null", "w", stderr))
        return -1;
    return rows[row].counts();
}

static void empty_folder(void)
{
    char command[PATH_MAX + 32];
    snprintf(command, sizeof(command), "rm -rf '%s'/*", folder);
    assert_int_equal(system(command), 0);
}

static void no_variable_leads_to_a_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        for (int with = 0; with < 2; with++) {
            int status;
            pid_t pid = fork();
            if (pid == 0) {
                privileged = with;
                exit(child(i)); /* with destructors: what was written for this process goes */
            }
            assert_int_equal(waitpid(pid, &status, 0), pid);
            empty_folder();
            if (!WIFEXITED(status) || WEXITSTATUS(status) != !with)
                fail_msg("%s, %s privileges: status 0x%x", rows[i].variable,
                         with ? "with" : "without", status);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_variable_leads_to_a_file)};
    char here[PATH_MAX - 32];
    if (!getcwd(here, sizeof(here)))
        return 99;
    snprintf(folder, sizeof(folder), "%s/privileged_test.XXXXXX", here);
    if (!mkdtemp(folder))
        return 99;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}

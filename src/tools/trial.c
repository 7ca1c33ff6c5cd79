/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/trial.h"

#include "tools/network.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 5000000

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

double trial_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/** The children of this process. @return whether there is any */
static bool children(char line[4096])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    bool any = f && fgets(line, 4096, f) && *line;
    if (f)
        fclose(f);
    return any;
}

/** Processes that left the group of the command, and have lost their parents, are our children. */
static void kill_strays(void)
{
    char line[4096];
    for (int round = 0; round < 100 && children(line); round++) {
        for (char *rest = line, *pid; (pid = strsep(&rest, " \n"));)
            if (*pid)
                kill((pid_t)atol(pid), SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

static int await(const struct trial *t, pid_t child)
{
    double end = trial_now() + t->seconds;
    int status;
    while (waitpid(child, &status, WNOHANG) != child) {
        if (trial_now() > end || interrupted) {
            kill(-child, SIGKILL);
            waitpid(child, &status, 0);
            return TRIAL_HUNG;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    kill(-child, SIGKILL);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static _Noreturn void become(const struct trial *t)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), out = null;
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (t->output)
        out = open(t->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (t->own_network && !network_own())
        tool_die(TOOL_FAILED, "no network of its own: %s", strerror(errno));
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    tool_exec(t->argv);
}

int trial_run(struct trial *t)
{
    fflush(NULL);
    interrupted = 0;
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    char line[4096];
    bool alone = !children(line); /* else whoever became this process had some */
    if (alone)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid_t child = fork();
    if (child < 0)
        tool_die(TOOL_FAILED, "fork: %s", strerror(errno));
    if (child == 0)
        become(t);
    setpgid(child, child); /* whoever is first */
    int status = await(t, child);
    if (alone)
        kill_strays();
    t->interrupted = interrupted;
    return status;
}

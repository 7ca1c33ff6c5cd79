/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/child.h"

#include "tools/tool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void pass_on(int signal)
{
    kill(child, signal);
}

int child_run(const char *tool, char **argv)
{
    int status;
    child = fork();
    if (child < 0)
        tool_die(TOOL_FAILED, "%s: fork: %s", tool, strerror(errno));
    if (child == 0)
        tool_exec(argv);
    signal(SIGINT, SIG_IGN); /* the terminal sends it to the program as well */
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            tool_die(TOOL_FAILED, "%s: waitpid: %s", tool, strerror(errno));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

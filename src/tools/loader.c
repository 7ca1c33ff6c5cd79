/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/loader.h"

#include "tools/tool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 20

static char *copy(const char *s, size_t len)
{
    char *text = strndup(s, len);
    if (!text)
        tool_die(TOOL_FAILED, "out of memory");
    return text;
}

static void add(struct loader_list *l, char *name, char *path)
{
    struct loaded *more = reallocarray(l->libraries, l->n + 1, sizeof(*more));
    if (!more)
        tool_die(TOOL_FAILED, "out of memory");
    l->libraries = more;
    l->libraries[l->n++] = (struct loaded){name, path};
}

static void add_missing(struct loader_list *l, char *name)
{
    char **more = reallocarray(l->missing, l->n_missing + 1, sizeof(*more));
    if (!more)
        tool_die(TOOL_FAILED, "out of memory");
    l->missing = more;
    l->missing[l->n_missing++] = name;
}

/* "\tNAME => PATH (0xADDRESS)", "\tPATH (0xADDRESS)", "\tNAME => not found"; without a tab, a
 * complaint. */
static void read_line(struct loader_list *l, char *line)
{
    static const char arrow[] = " => ";
    line[strcspn(line, "\n")] = '\0';
    char *name = line + 1, *middle = strstr(line, arrow);
    char *path = middle ? middle + strlen(arrow) : name, *end = strstr(path, " (0x");
    if (*line != '\t') {
        if (!l->error && *line)
            l->error = copy(line, strlen(line));
    } else if (middle && !strcmp(path, "not found")) {
        add_missing(l, copy(name, (size_t)(middle - name)));
    } else if (end && *path == '/') {
        add(l, copy(name, (size_t)((middle ? middle : end) - name)),
            copy(path, (size_t)(end - path)));
    }
}

static char **copy_of_environment(void)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **copy = calloc(n + 1, sizeof(*copy));
    if (!copy)
        tool_die(TOOL_FAILED, "out of memory");
    return memcpy(copy, environ, n * sizeof(*copy));
}

/** What comes of fork() with the environment of a program of anywarp's. A child of a process with
 * threads may not allocate, so this process has that environment meanwhile. */
static pid_t fork_with_environment(void)
{
    char **before = copy_of_environment();
    tool_set_environment();
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1); /* --list ends at the first that is missing */
    pid_t child = fork();
    if (child != 0)
        environ = before;
    return child;
}

static _Noreturn void become_loader(int out, const char *loader, const char *program)
{
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    alarm(SECONDS_MAX);
    execl(loader, loader, program, (char *)NULL);
    _exit(TOOL_NOT_FOUND);
}

static void read_answer(struct loader_list *l, int fd)
{
    FILE *f = fdopen(fd, "r");
    char *line = NULL;
    size_t size = 0;
    while (f && getline(&line, &size, f) >= 0)
        read_line(l, line);
    free(line);
    if (f)
        fclose(f);
}

void loader_list_init(struct loader_list *l, const char *loader, const char *program)
{
    int ends[2], status;
    *l = (struct loader_list){0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        tool_die(TOOL_FAILED, "cannot make a pipe");
    fflush(stdout);
    pid_t child = fork_with_environment();
    if (child < 0)
        tool_die(TOOL_FAILED, "cannot make a process");
    if (child == 0)
        become_loader(ends[1], loader, program);
    close(ends[1]);
    read_answer(l, ends[0]);
    waitpid(child, &status, 0);
    if (l->n == 0 && l->n_missing == 0 && !l->error)
        l->error = copy("it ended without a word", strlen("it ended without a word"));
}

void loader_list_fini(struct loader_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->libraries[i].name);
        free(l->libraries[i].path);
    }
    free(l->libraries);
    for (size_t i = 0; i < l->n_missing; i++)
        free(l->missing[i]);
    free(l->missing);
    free(l->error);
}

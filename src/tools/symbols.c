/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/symbols.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 256 /* addresses of one run */
#define OPTIONS 7   /* before them */
#define TEXT    20  /* characters of an address */

static void replace(char **old, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return;
    free(*old);
    *old = copy;
}

/** "path:12 (discriminator 3)", "path:?" or "??:0". */
static void take_place(struct symbol *s, char *place)
{
    char *colon = strrchr(place, ':');
    unsigned long line = colon ? strtoul(colon + 1, NULL, 10) : 0;
    if (!line)
        return;
    *colon = '\0';
    replace(&s->source, place);
    s->line = (unsigned)line;
}

/** Two lines: function, place. @return whether they are there */
static bool take_pair(struct symbol *s, char *function, FILE *f)
{
    char place[4096];
    if (!fgets(place, sizeof(place), f))
        return false;
    function[strcspn(function, "\n")] = place[strcspn(place, "\n")] = '\0';
    if (strcmp(function, "??") != 0)
        replace(&s->function, function);
    take_place(s, place);
    return true;
}

static struct symbol *add_outer(struct symbol *inner)
{
    struct symbol *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->path = strdup(inner->path);
    s->address = inner->address;
    inner->outer = s;
    return s;
}

/** For each a line with the address, and a pair for it and for each function that it is inlined in.
 */
static void read_answers(FILE *f, struct symbol **symbols, const size_t *which, size_t n)
{
    char line[1024];
    struct symbol *s = NULL;
    bool fresh = false;
    for (size_t i = 0; fgets(line, sizeof(line), f);) {
        if (!strncmp(line, "0x", 2)) {
            if (i == n)
                return;
            s = symbols[which[i++]];
            fresh = true;
            continue;
        }
        s = s && !fresh ? add_outer(s) : s;
        fresh = false;
        if (!s || !take_pair(s, line, f))
            return;
    }
}

static _Noreturn void become(char *const *argv, int out)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    unsetenv("LD_PRELOAD");
    unsetenv("LD_LIBRARY_PATH");
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDERR_FILENO);
    dup2(out, STDOUT_FILENO);
    execvp(argv[0], argv);
    _exit(127);
}

static void ask(struct symbol **symbols, const size_t *which, size_t n)
{
    char text[AT_ONCE][TEXT];
    char *argv[AT_ONCE + OPTIONS + 1] = {
        "addr2line", "-a", "-i", "-f", "-C", "-e", symbols[which[0]]->path};
    int ends[2];
    for (size_t i = 0; i < n; i++) {
        snprintf(text[i], TEXT, "0x%lx", symbols[which[i]]->address);
        argv[OPTIONS + i] = text[i];
    }
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        become(argv, ends[1]);
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    if (f && pid > 0)
        read_answers(f, symbols, which, n);
    if (f)
        fclose(f);
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

void symbols_find(struct symbol **symbols, size_t n)
{
    bool *done = calloc(n ? n : 1, sizeof(*done));
    for (size_t i = 0; done && i < n; i++) {
        size_t which[AT_ONCE], count = 0;
        for (size_t k = i; k < n && count < AT_ONCE; k++) {
            if (done[k] || strcmp(symbols[k]->path, symbols[i]->path) != 0)
                continue;
            done[k] = true;
            which[count++] = k;
        }
        if (count && access(symbols[i]->path, R_OK) == 0)
            ask(symbols, which, count);
    }
    free(done);
}

void symbol_drop(struct symbol *s)
{
    free(s->path);
    free(s->function);
    free(s->source);
}

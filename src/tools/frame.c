/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/frame.h"

#include "tools/program.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define INLINED " (inlined by) "

/**
 * Runs addr2line. @return whether it knows the place: @p text is then as "f at f.c:3, in g at
 * g.c:17" where f is inlined, without what headers have inlined, whose names begin with underscores
 */
static bool run(char *const *argv, char *text, size_t size)
{
    char line[512];
    size_t at = 0;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(ends[1], STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    while (child > 0 && f && fgets(line, sizeof(line), f)) {
        char *name = line;
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(name, INLINED, strlen(INLINED)))
            name += strlen(INLINED);
        if (*name != '?' && strncmp(name, "__", 2) != 0 && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", in " : "", name);
    }
    if (f)
        fclose(f);
    if (child > 0)
        waitpid(child, NULL, 0);
    return at > 0;
}

static bool ask_addr2line(char *text, size_t size, char *file, uint64_t address)
{
    static char *program;
    static bool searched;
    char number[32], line[1024];
    if (!searched)
        program = program_search("addr2line");
    searched = true;
    if (!program)
        return false;
    snprintf(number, sizeof(number), "0x%llx", (unsigned long long)address - 1);
    char *argv[] = {program, "-sfpiCe", file, number, NULL};
    if (!run(argv, line, sizeof(line)))
        return false;
    char *unknown = strstr(line, " at ??:");
    if (unknown)
        snprintf(unknown, strlen(unknown) + 1, " in %.*s", (int)strlen(unknown) - 4,
                 strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
    snprintf(text, size, "%s", line);
    return true;
}

void frame_name(char *text, size_t size, const char *frame)
{
    char *file = strdup(frame), *plus = file ? strrchr(file, '+') : NULL;
    const char *slash = strrchr(frame, '/');
    snprintf(text, size, "%s", slash ? slash + 1 : frame);
    if (plus) {
        *plus = '\0';
        ask_addr2line(text, size, file, strtoull(plus + 1, NULL, 16));
    }
    free(file);
}

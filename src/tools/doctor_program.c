/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/doctor.h"
#include "tools/elf.h"
#include "tools/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As in the kernel: how much of a first line counts, and how many interpreters in a row. */
#define LINE_SIZE  256
#define DEPTH_MAX  4
#define WORD_BREAK " \t"

/* It would be run with --system-libraries. */
static bool on_system_libraries;

static void examine(const char *path, int depth);

/** The program that "env ARGUMENTS" would run. */
static char *env_program(char *arguments)
{
    for (char *rest, *word = strtok_r(arguments, WORD_BREAK, &rest); word;
         word = strtok_r(NULL, WORD_BREAK, &rest))
        if (*word != '-' && !strchr(word, '='))
            return strchr(word, '/') ? strdup(word) : program_search(word);
    return NULL;
}

static void examine_interpreter(const char *script, char *line, int depth)
{
    char *interpreter = line + strspn(line, WORD_BREAK), *path;
    size_t len = strcspn(interpreter, WORD_BREAK);
    char *arguments = interpreter + len + (interpreter[len] != '\0');
    interpreter[len] = '\0';
    const char *slash = strrchr(interpreter, '/');
    if (slash && !strcmp(slash, "/env"))
        path = env_program(arguments);
    else
        path = strdup(interpreter);
    if (!path || !*path || access(path, X_OK) != 0) {
        doctor_say(DOCTOR_FAIL, "install it, or change the first line of the script",
                   "%s is a script for %s, which cannot be run here", script,
                   path && *path ? path : "a program");
    } else {
        doctor_say(DOCTOR_GOOD, NULL, "%s is a script for %s", script, path);
        examine(path, depth + 1);
    }
    free(path);
}

static void examine_text(const char *path, int fd, int depth)
{
    char line[LINE_SIZE];
    ssize_t len = pread(fd, line, sizeof(line) - 1, 0);
    if (len < 0)
        len = 0;
    line[len] = '\0';
    if (depth > DEPTH_MAX) {
        doctor_say(DOCTOR_FAIL, "name a program in its first line",
                   "%s is a script for a script for a script: too many", path);
    } else if (len > 2 && line[0] == '#' && line[1] == '!') {
        line[strcspn(line, "\n")] = '\0';
        examine_interpreter(path, line + 2, depth);
    } else if (strlen(line) < (size_t)len) {
        doctor_say(DOCTOR_FAIL, "build or install it again", "%s is neither a program nor a script",
                   path);
    } else {
        doctor_say(DOCTOR_WARN, "begin it with a line such as #!/bin/sh",
                   "%s is not a program and does not name an interpreter: /bin/sh gets it", path);
        examine("/bin/sh", depth + 1);
    }
}

static void examine_native(const char *path, const struct elf *e, int depth)
{
    const char *privilege = program_privilege(path);
    if (privilege)
        doctor_say(DOCTOR_FAIL, "run a copy, which is without: cp makes one",
                   "%s %s: the loader ignores %s for it", path, privilege,
                   on_system_libraries ? "LD_PRELOAD" : "LD_LIBRARY_PATH");
    else if (*e->interpreter && on_system_libraries)
        doctor_say(DOCTOR_GOOD, NULL, "%s is dynamically linked, so it gets anywarp's devices",
                   path);
    else if (*e->interpreter)
        doctor_dynamic(path, e);
    else if (depth > 0)
        doctor_say(DOCTOR_NOTE, NULL,
                   "%s is statically linked; programs that the script starts get anywarp", path);
    else
        doctor_say(DOCTOR_FAIL, "link it dynamically with libibverbs and librdmacm",
                   "%s is statically linked: it cannot load anywarp", path);
}

static void examine(const char *path, int depth)
{
    struct elf e;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        doctor_say(DOCTOR_WARN, "make it readable", "%s cannot be examined: %s", path,
                   strerror(errno));
        return;
    }
    elf_init(&e, fd);
    switch (e.kind) {
    case ELF_NONE:
        examine_text(path, fd, depth);
        break;
    case ELF_BROKEN:
        doctor_say(DOCTOR_FAIL, "build or install it again",
                   "%s is a damaged program: parts of it are missing or wrong", path);
        break;
    case ELF_FOREIGN:
        doctor_say(DOCTOR_FAIL, "build anywarp for the machine of the program",
                   "%s is a program for another machine than anywarp", path);
        break;
    case ELF_NATIVE:
        examine_native(path, &e, depth);
        break;
    }
    elf_fini(&e);
    close(fd);
}

void doctor_program(const char *name, bool system)
{
    on_system_libraries = system;
    char *path = program_find(name);
    examine(path, 0);
    free(path);
}

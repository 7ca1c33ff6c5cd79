/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/elf.h"
#include "tools/elf_dynamic.h"
#include "tools/folders.h"
#include "tools/like.h"
#include "tools/program.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tool_check_libraries(void)
{
    static const char *const names[] = {"libibverbs.so.1", "librdmacm.so.1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", tool_libraries, names[i]);
        if (access(path, F_OK) != 0)
            tool_die(TOOL_FAILED, "%s is missing: is anywarp installed?", path);
    }
}

static void check_privileges(const char *program)
{
    if (geteuid() != getuid() || getegid() != getgid())
        tool_die(TOOL_CANNOT_RUN, "cannot run with differing real and effective user or group");
    const char *why = program_privilege(program);
    if (why)
        tool_die(TOOL_CANNOT_RUN, "%s: %s, so the loader would ignore anywarp's libraries", program,
                 why);
}

/* A program that may be executed but not read is left to the kernel. */
static void check_loader(const char *program)
{
    struct elf e;
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    elf_init(&e, fd);
    if (e.kind == ELF_FOREIGN)
        tool_die(TOOL_CANNOT_RUN, "%s: is for another machine: it cannot load anywarp", program);
    if (e.kind == ELF_NATIVE && !*e.interpreter)
        tool_die(TOOL_CANNOT_RUN, "%s: is statically linked: it cannot load anywarp", program);
    elf_fini(&e);
    close(fd);
}

/** Puts @p value before what is in the variable, or behind it, with a colon between. */
static void extend(const char *name, const char *value, bool before)
{
    const char *old = getenv(name);
    char *list = NULL;
    int n;
    if (!old || !*old)
        n = asprintf(&list, "%s", value);
    else
        n = asprintf(&list, "%s:%s", before ? value : old, before ? old : value);
    if (n < 0 || setenv(name, list, 1) != 0)
        tool_die(TOOL_FAILED, "out of memory");
    free(list);
}

void tool_set_environment(void)
{
    extend("LD_LIBRARY_PATH", tool_libraries, true);
    extend("PATH", tool_programs, false);
    if (*tool_preload) {
        setenv("ASAN_OPTIONS", "detect_leaks=0", 0); /* leaks of the program are not ours to tell */
        extend("LD_PRELOAD", tool_preload, true);
    }
}

static void preload(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", tool_libraries, name);
    if (access(path, F_OK) != 0)
        tool_die(TOOL_FAILED, "%s is missing: is anywarp installed?", path);
    tool_check_folder(path, ": ", "blanks and ':'");
    extend("LD_PRELOAD", path, true);
}

/* The system's libraries stay, and find anywarp where they look for the kernel's devices. */
static void set_system_libraries(void)
{
    preload("libanywarp-uverbs-preload.so");
    if (*tool_preload) {
        setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
        extend("LD_PRELOAD", tool_preload, true);
    }
}

const char *tool_paths(void)
{
    static char path[PATH_MAX];
    const char *wanted = getenv("ANYWARP_PATHS");
    if (*tool_preload || (wanted && !strcmp(wanted, "off")))
        return NULL;
    bool fits =
        snprintf(path, sizeof(path), "%s/libanywarp-paths.so", tool_libraries) < (int)sizeof(path);
    return fits && tool_is_word(path, ": ") && access(path, R_OK) == 0 ? path : NULL;
}

/* AddressSanitizer ends a program that has a library before it. */
static bool has_sanitizer(const char *program)
{
    struct elf e;
    struct elf_dynamic d;
    bool found = false;
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    elf_init(&e, fd);
    if (e.kind == ELF_NATIVE) {
        bool whole = elf_dynamic_init(&d, &e);
        for (size_t i = 0; whole && i < d.n_needed; i++)
            found |= !strncmp(d.needed[i], "libasan.", strlen("libasan."));
        elf_dynamic_fini(&d);
    }
    elf_fini(&e);
    close(fd);
    return found;
}

static void preload_paths(const char *name)
{
    const char *path = tool_paths(), *already = getenv("LD_PRELOAD");
    if (!path || (already && strstr(already, path)))
        return;
    char *program = program_find(name);
    if (!has_sanitizer(program))
        extend("LD_PRELOAD", path, false);
    free(program);
}

static void set_variable(char *assignment)
{
    char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        tool_die(TOOL_USAGE, "run: -e %s: should be VARIABLE=VALUE", assignment);
    *equals = '\0';
    if (setenv(assignment, equals + 1, 1) != 0)
        tool_die(TOOL_FAILED, "out of memory");
}

static _Noreturn void become(char **argv)
{
    char *program = program_find(*argv);
    check_privileges(program);
    check_loader(program);
    execvp(program, argv); /* its path has a slash: nothing is searched */
    tool_die(errno == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN, "%s: %s", program,
             strerror(errno));
}

void tool_exec(char **argv)
{
    tool_check_libraries();
    tool_set_environment();
    preload_paths(*argv);
    become(argv);
}

/** What the options stand for that are a variable each; the libraries judge its value. */
static const char *const variable_of[] = {
    ['v'] = "VERBS_LOG_LEVEL",
    ['p'] = "ANYWARP_PCAP",
    ['c'] = "ANYWARP_CRC",
    ['R'] = "ANYWARP_RECORD",
};

static int run(int argc, char **argv)
{
    static const struct option options[] = {{"env", required_argument, NULL, 'e'},
                                            {"like", required_argument, NULL, 'l'},
                                            {"log", required_argument, NULL, 'v'},
                                            {"pcap", required_argument, NULL, 'p'},
                                            {"crc", required_argument, NULL, 'c'},
                                            {"rsocket", no_argument, NULL, 'r'},
                                            {"system-libraries", no_argument, NULL, 's'},
                                            {"record", required_argument, NULL, 'R'},
                                            {0}};
    bool system_libraries = false;
    for (int c; (c = getopt_long(argc, argv, "+e:", options, NULL)) != -1;) {
        if (c == '?')
            return TOOL_USAGE;
        if (c == 'l' && !strcmp(optarg, "list"))
            return like_list();
        if (c == 'l')
            like_set(optarg);
        else if (c == 'r')
            preload("librspreload.so");
        else if (c == 's')
            system_libraries = true;
        else if (c == 'e')
            set_variable(optarg);
        else if (setenv(variable_of[c], optarg, 1) != 0)
            tool_die(TOOL_FAILED, "out of memory");
    }
    if (optind == argc)
        tool_die(TOOL_USAGE, "run: which command? Try: anywarp run rping -s");
    if (system_libraries) {
        set_system_libraries();
        become(argv + optind);
    }
    tool_exec(argv + optind);
}

const struct tool tool_run = {
    .name = "run",
    .arguments = "[-e VARIABLE=VALUE]... [--log LEVEL] [--pcap FILE]\n"
                 "           [--record FILE] [--crc on|off|auto] [--like ADAPTER|list]\n"
                 "           [--rsocket] [--system-libraries] [--] COMMAND [ARGUMENT...]",
    .summary = "run a program on anywarp",
    .help = "Becomes the program, with anywarp's libraries before the system's: same\n"
            "process, same exit status, signals go straight to it.\n"
            "\n"
            "  -e, --env VARIABLE=VALUE   set a variable of the program, as in\n"
            "                             -e ANYWARP_CRC=on\n"
            "  --log LEVEL                VERBS_LOG_LEVEL; 2: why calls, completions and\n"
            "                             connections fail\n"
            "  --pcap FILE                ANYWARP_PCAP: a capture for Wireshark\n"
            "  --record FILE              ANYWARP_RECORD: keep the last calls and frames\n"
            "                             there, for \"anywarp record\" after a crash\n"
            "  --crc on|off|auto          ANYWARP_CRC\n"
            "  --like ADAPTER             refuse what this adapter would refuse, and log\n"
            "                             why; list prints the adapters, their limits and\n"
            "                             the sources of these\n"
            "  --rsocket                  a program of sockets: its TCP connections become\n"
            "                             rsockets, where the peer has them, too\n"
            "  --system-libraries         on the system's own libibverbs and librdmacm,\n"
            "                             which take anywarp for a device of the kernel\n",
    .run = run,
};

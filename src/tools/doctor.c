/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/doctor.h"

#include "tools/text.h"
#include "tools/tool.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>

#define INDENT 6

static enum doctor_level worst;

void doctor_say(enum doctor_level level, const char *todo, const char *fmt, ...)
{
    static const char *const labels[] = {[DOCTOR_GOOD] = "ok",
                                         [DOCTOR_NOTE] = "note",
                                         [DOCTOR_WARN] = "warn",
                                         [DOCTOR_FAIL] = "FAIL"};
    char *text;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        tool_die(TOOL_FAILED, "out of memory");
    va_end(ap);
    text_wrap(stdout, INDENT, labels[level], text);
    if (todo)
        text_wrap(stdout, INDENT + 4, "      ->", todo);
    free(text);
    if (level > worst)
        worst = level;
}

static int doctor(int argc, char **argv)
{
    static const struct option none[] = {{0}};
    if (getopt_long(argc, argv, "+", none, NULL) != -1)
        return TOOL_USAGE;
    doctor_installation();
    doctor_machine();
    if (optind < argc)
        doctor_program(argv[optind]);
    static const char *const verdicts[] = {
        [DOCTOR_GOOD] = "Nothing is in the way.",
        [DOCTOR_NOTE] = "Nothing is in the way.",
        [DOCTOR_WARN] = "It should work; look at the warnings if it does not.",
        [DOCTOR_FAIL] = "It will not work before what is marked FAIL is mended.",
    };
    printf("\n%s\n", verdicts[worst]);
    return worst == DOCTOR_FAIL ? TOOL_FAILED : 0;
}

const struct tool tool_doctor = {
    .name = "doctor",
    .arguments = "[COMMAND [ARGUMENT...]]",
    .summary = "find out what keeps anywarp, or a program on it, from working",
    .help =
        "Examines the installation, the environment and the machine, and the program if one is\n"
        "named, without running it. Each finding says what to do about it. The exit status is\n"
        "0 if nothing is in the way, 1 if something is.\n",
    .run = doctor,
};

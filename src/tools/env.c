/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* Inside double quotes of the shell. */
static void print_quoted(const char *s)
{
    for (; *s; s++) {
        if (strchr("\"$`\\", *s))
            putchar('\\');
        putchar(*s);
    }
}

/** @p before and @p after are of the shell's language, and stand around the value as they are. */
static void print_variable(const char *name, const char *before, const char *value,
                           const char *after)
{
    printf("export %s=\"%s", name, before);
    print_quoted(value);
    printf("%s\"\n", after);
}

static int env(int argc, char **argv)
{
    static const struct option none[] = {{0}};
    if (getopt_long(argc, argv, "", none, NULL) != -1)
        return TOOL_USAGE;
    if (optind != argc)
        tool_die(TOOL_USAGE, "env takes no argument");
    tool_check_libraries();
    print_variable("LD_LIBRARY_PATH", "", tool_libraries, "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
    print_variable("PATH", "${PATH:+$PATH:}", tool_programs, "");
    if (*tool_preload)
        print_variable("LD_PRELOAD", "", tool_preload, "");
    if (tool_paths())
        print_variable("LD_PRELOAD", "${LD_PRELOAD:+$LD_PRELOAD:}", tool_paths(), "");
    return 0;
}

const struct tool tool_env = {
    .name = "env",
    .arguments = "",
    .summary = "print the environment, for a whole shell: eval \"$(anywarp env)\"",
    .help = "Prints what to set so that programs run on anywarp, in the language of the\n"
            "shell:\n"
            "\n"
            "    eval \"$(anywarp env)\"\n",
    .run = env,
};

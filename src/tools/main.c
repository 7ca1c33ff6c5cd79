/* SPDX-License-Identifier: BSD-2-Clause */
/* anywarp: runs RDMA programs on anywarp's libraries, and tells about them. */
#include "tools/folders.h"
#include "tools/tool.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of "anywarp --help". */
static const struct tool *const tools[] = {
    &tool_run,    &tool_check,  &tool_chaos, &tool_shrink, &tool_record, &tool_env, &tool_devices,
    &tool_doctor, &tool_config, &tool_keys,  &tool_ping,   &tool_stat,   &tool_top, &tool_explain,
};
#define N_TOOLS (sizeof(tools) / sizeof(tools[0]))

void tool_die(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("anywarp: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(status);
}

static void print_usage(FILE *f)
{
    fputs("usage: anywarp COMMAND [ARGUMENT...]\n"
          "\n"
          "A program that uses libibverbs or librdmacm runs on it unchanged: no RDMA\n"
          "adapter, no kernel module, no root. For example: anywarp run rping -s\n"
          "\n",
          f);
    for (size_t i = 0; i < N_TOOLS; i++)
        fprintf(f, "  %-8s %s\n", tools[i]->name, tools[i]->summary);
    fputs("\n"
          "  --help, --version\n"
          "\n"
          "anywarp COMMAND --help tells more of a command.\n",
          f);
}

static void print_help(const struct tool *t)
{
    printf("usage: anywarp %s%s%s\n\n%s", t->name, *t->arguments ? " " : "", t->arguments, t->help);
}

static const struct tool *find_tool(const char *name)
{
    for (size_t i = 0; i < N_TOOLS; i++)
        if (!strcmp(tools[i]->name, name))
            return tools[i];
    return NULL;
}

static bool wants_help(const char *arg)
{
    return !strcmp(arg, "--help") || !strcmp(arg, "-h");
}

/** Whether help is among the options, before any other argument. */
static bool options_want_help(char **arg)
{
    for (; *arg && **arg == '-' && strcmp(*arg, "--") != 0; arg++)
        if (wants_help(*arg))
            return true;
    return false;
}

static int help(const char *name)
{
    const struct tool *t = name ? find_tool(name) : NULL;
    if (name && !t)
        tool_die(TOOL_USAGE, "%s: unknown command. Try: anywarp --help", name);
    if (t)
        print_help(t);
    else
        print_usage(stdout);
    return 0;
}

static int run_tool(const struct tool *t, int argc, char **argv)
{
    char title[64];
    if (options_want_help(argv + 1))
        return help(t->name);
    snprintf(title, sizeof(title), "anywarp %s", t->name);
    argv[0] = title;
    return t->run(argc, argv);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return TOOL_USAGE;
    }
    tool_find_folders();
    const char *name = argv[1];
    const struct tool *t;
    int status = 0;
    if (wants_help(name) || !strcmp(name, "help"))
        status = help(argv[2]);
    else if (!strcmp(name, "--version"))
        printf("anywarp %s\n", PACKAGE_VERSION);
    else if ((t = find_tool(name)))
        status = run_tool(t, argc - 1, argv + 1);
    else
        tool_die(TOOL_USAGE, "%s: unknown command. Did you mean: anywarp run %s ?", name, name);
    if (fflush(stdout) != 0 || ferror(stdout))
        tool_die(TOOL_FAILED, "standard output: cannot write");
    return status;
}

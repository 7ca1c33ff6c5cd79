/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/conf.h"
#include "tools/text.h"
#include "tools/tool.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/** What is set; an empty value is as good as none. */
static const char *present(const struct iw_knob *k)
{
    const char *value = getenv(k->name);
    return value && *value ? value : NULL;
}

static void print_human(const struct iw_knob *k)
{
    const char *value = present(k), *otherwise = iw_knob_otherwise(k, value);
    if (!value)
        printf("%s: not set\n", k->name);
    else if (iw_knob_legal(k, value))
        printf("%s=%s\n", k->name, value);
    else
        printf("%s=%s: not understood, %s is in force\n", k->name, value,
               otherwise ? otherwise : "none");
    printf("    %s: %s (default %s)\n", k->type, k->values, k->initial ? k->initial : "none");
    text_wrap(stdout, 4, "", k->meaning);
}

static void print_json(const struct iw_knob *k)
{
    const char *value = present(k);
    fputc('{', stdout);
    json_member(stdout, "name", k->name);
    json_member(stdout, "type", k->type);
    json_member(stdout, "values", k->values);
    json_member(stdout, "default", k->initial);
    json_member(stdout, "value", value);
    json_member(stdout, "meaning", k->meaning);
    printf("\"legal\": %s}", !value || iw_knob_legal(k, value) ? "true" : "false");
}

static bool listed(const char *name, char **names)
{
    for (; *names; names++)
        if (!strcmp(*names, name))
            return true;
    return false;
}

static void check_names(char **names)
{
    size_t n;
    const struct iw_knob *knobs = iw_knobs(&n);
    for (; *names; names++) {
        size_t i = 0;
        while (i < n && strcmp(knobs[i].name, *names) != 0)
            i++;
        if (i == n)
            tool_die(TOOL_FAILED, "config: %s: no such variable", *names);
    }
}

static int config(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {0}};
    bool json = false;
    for (int c; (c = getopt_long(argc, argv, "j", options, NULL)) != -1;) {
        if (c != 'j')
            return TOOL_USAGE;
        json = true;
    }
    size_t n, printed = 0;
    char **names = argv + optind;
    const struct iw_knob *k = iw_knobs(&n);
    check_names(names);
    for (const struct iw_knob *end = k + n; k < end; k++) {
        if (*names && !listed(k->name, names))
            continue;
        if (json)
            fputs(printed ? ",\n " : "[", stdout);
        else if (printed)
            putchar('\n');
        (json ? print_json : print_human)(k);
        printed++;
    }
    if (json)
        puts("]");
    return 0;
}

const struct tool tool_config = {
    .name = "config",
    .arguments = "[--json] [VARIABLE...]",
    .summary = "the environment variables: meaning, values, and what is set now",
    .help = "Prints the environment variables that the libraries read, or those that are\n"
            "named: the value now, if one is set, the legal ones, the default and the\n"
            "meaning. Programs read them once, when they first use the libraries.\n"
            "\n"
            "  -j, --json   as an array of JSON objects\n",
    .run = config,
};

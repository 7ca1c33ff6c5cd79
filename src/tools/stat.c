/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stats_text.h"
#include "tools/tool.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint32_t parse_pid(const char *s)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(s, &end, 10);
    if (!isdigit((unsigned char)*s) || *end || errno || n == 0 || n > UINT32_MAX)
        tool_die(TOOL_USAGE, "stat: %s: no process ID", s);
    return (uint32_t)n;
}

static void print_all(const struct stats_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        stats_print(stdout, &set->process[i]);
    if (!set->n)
        puts("No process of this user runs on anywarp.");
    if (set->ended)
        printf("Of %zu that ended without exit(): anywarp stat --all, or --clear\n", set->ended);
}

static void print_all_json(const struct stats_set *set)
{
    putchar('[');
    for (size_t i = 0; i < set->n; i++) {
        fputs(i ? ",\n " : "", stdout);
        stats_print_json(stdout, &set->process[i]);
    }
    puts("]");
}

static int stat(int argc, char **argv)
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
                                            {"clear", no_argument, NULL, 'c'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    struct stats_choice choice = {0};
    struct stats_set set;
    bool json = false, clear = false;
    for (int c; (c = getopt_long(argc, argv, "acj", options, NULL)) != -1;) {
        if (c == '?')
            return TOOL_USAGE;
        choice.all |= c == 'a';
        clear |= c == 'c';
        json |= c == 'j';
    }
    if (argc - optind > 1)
        tool_die(TOOL_USAGE, "stat: one process ID at most");
    if (argv[optind])
        choice.pid = parse_pid(argv[optind]);
    stats_read_all(&set, &choice);
    if (choice.pid && !set.n)
        tool_die(TOOL_FAILED, "stat: no statistics of process %" PRIu32, choice.pid);
    if (clear)
        set.ended = 0;
    (json ? print_all_json : print_all)(&set);
    if (clear)
        stats_remove_ended();
    stats_free(&set);
    return 0;
}

const struct tool tool_stat = {
    .name = "stat",
    .arguments = "[--json] [--all] [--clear] [PID]",
    .summary = "objects, connections, traffic and errors of the processes that run on anywarp",
    .help = "Prints what the processes of this user that run on anywarp do: devices, objects, CQs\n"
            "with the completions that wait in them, QPs with state, addresses and what was\n"
            "negotiated, messages and bytes in and out since the start, and the last errors. The\n"
            "counters have the names that iWARP adapters give them. With PID, of that process.\n"
            "\n"
            "  -j, --json    as an array of JSON objects\n"
            "  -a, --all     also processes that ended without exit(), as by a signal\n"
            "  -c, --clear   forget those afterwards; else the 16 newest are kept\n",
    .run = stat,
};

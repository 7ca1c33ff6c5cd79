/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stats_text.h"
#include "tools/tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The process that is named: by its number, or by its command. */
static void choose(struct stats_choice *choice, const char *s)
{
    char *end;
    if (s[strspn(s, "0123456789")]) {
        choice->name = s;
        return;
    }
    errno = 0;
    unsigned long n = strtoul(s, &end, 10);
    if (!*s || errno || n == 0 || n > UINT32_MAX)
        tool_die(TOOL_USAGE, "stat: \"%s\": no process ID, and no name", s);
    choice->pid = (uint32_t)n;
}

typedef void print_one(FILE *f, const struct stats *s);

static void print_all(const struct stats_set *set, print_one *print)
{
    for (size_t i = 0; i < set->n; i++)
        print(stdout, &set->process[i]);
}

static void print_ended(const struct stats_set *set)
{
    if (!set->n)
        puts("No process of this user runs on anywarp.");
    if (set->ended)
        printf("Of %zu that failed, or ended without exit(): anywarp stat --all, --errors, or "
               "--clear\n",
               set->ended);
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

static void print_failed(const struct stats_set *set)
{
    print_all(set, stats_print_errors);
    if (!set->n)
        puts("No error of a connection.");
}

static int stat(int argc, char **argv)
{
    static const struct option options[] = {
        {"all", no_argument, NULL, 'a'},  {"clear", no_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'}, {"errors", no_argument, NULL, 'e'},
        {"full", no_argument, NULL, 'f'}, {0}};
    struct stats_choice choice = {0};
    struct stats_set set;
    bool json = false, clear = false, full = false;
    for (int c; (c = getopt_long(argc, argv, "acefj", options, NULL)) != -1;) {
        if (c == '?')
            return TOOL_USAGE;
        choice.all |= c == 'a' || c == 'e';
        choice.failed |= c == 'e';
        clear |= c == 'c';
        full |= c == 'f';
        json |= c == 'j';
    }
    if (argc - optind > 1)
        tool_die(TOOL_USAGE, "stat: one process ID or name at most");
    const char *which = argv[optind];
    if (which)
        choose(&choice, which);
    stats_read_all(&set, &choice);
    if (which && !set.n)
        tool_die(TOOL_FAILED, "stat: no %s of process %s", choice.failed ? "errors" : "statistics",
                 which);
    if (json)
        print_all_json(&set);
    else if (choice.failed)
        print_failed(&set);
    else
        print_all(&set, full || which ? stats_print : stats_print_line);
    if (clear)
        set.ended = 0;
    if (!json && !choice.failed)
        print_ended(&set);
    if (clear)
        stats_remove_ended();
    stats_free(&set);
    return 0;
}

const struct tool tool_stat = {
    .name = "stat",
    .arguments = "[--json] [--all] [--errors] [--full] [--clear] [PID|NAME]",
    .summary = "objects, connections, traffic and errors of processes on anywarp",
    .help = "Prints a line for each process of this user that runs on anywarp: queue pairs,\n"
            "messages and bytes in and out, listeners and the requests that wait there for\n"
            "an answer, messages that wait for a receive (held), failures. With PID or NAME,\n"
            "of those processes all: devices, objects, CQs with the completions that wait in\n"
            "them, listeners, QPs with state, addresses, what was negotiated and how full\n"
            "their queues are, and the last errors. What is 0 is left out. The counters have\n"
            "the names that iWARP adapters give them.\n"
            "\n"
            "  -j, --json    all, as an array of JSON objects\n"
            "  -a, --all     also processes that failed, or ended without exit(), as by a\n"
            "                signal\n"
            "  -e, --errors  why connections failed, of all these processes\n"
            "  -f, --full    all of each process\n"
            "  -c, --clear   forget those that ended; else the 16 newest are kept\n",
    .run = stat,
};

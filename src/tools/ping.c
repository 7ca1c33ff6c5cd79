/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reach.h"
#include "tools/text.h"
#include "tools/tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define INDENT      19
#define SECONDS     5
#define SECONDS_MAX 3600

static unsigned parse_ms(const char *s)
{
    char *end;
    errno = 0;
    double seconds = strtod(s, &end);
    if (!*s || *end || errno || !(seconds >= 0.001 && seconds <= SECONDS_MAX))
        tool_die(TOOL_USAGE, "ping: --timeout %s: should be 0.001 to %d seconds", s, SECONDS_MAX);
    return (unsigned)(seconds * 1000);
}

static void tell(const struct reach_step *s)
{
    char label[INDENT];
    snprintf(label, sizeof(label), "%-4s %9.3f ms", s->name, s->ms);
    text_wrap(stdout, INDENT, label, s->text);
    if (s->todo)
        text_wrap(stdout, INDENT, "               ->", s->todo);
    fflush(stdout);
}

static int ping(int argc, char **argv)
{
    static const struct option options[] = {{"timeout", required_argument, NULL, 't'}, {0}};
    unsigned ms = SECONDS * 1000;
    for (int c; (c = getopt_long(argc, argv, "t:", options, NULL)) != -1;) {
        if (c != 't')
            return TOOL_USAGE;
        ms = parse_ms(optarg);
    }
    if (argc - optind != 2)
        tool_die(TOOL_USAGE, "ping: where? Try: anywarp ping HOST PORT");
    if (!reach_is_port(argv[optind + 1]))
        tool_die(TOOL_USAGE, "ping: port %s: should be 1 to 65535, or a name", argv[optind + 1]);
    bool good = reach(argv[optind], argv[optind + 1], ms, tell);
    puts(good ? "It connects." : "It does not connect.");
    return good ? 0 : TOOL_FAILED;
}

const struct tool tool_ping = {
    .name = "ping",
    .arguments = "[--timeout SECONDS] HOST PORT",
    .summary = "connect to an RDMA listener, step by step, and tell where that ends",
    .help = "Looks HOST up, connects by TCP, and negotiates as rdma_connect() does; prints\n"
            "how long each step took, or why it failed. The listener, anywarp or not, gets a\n"
            "connection, which ends at once. It speaks without TLS. The exit status is 0 if\n"
            "an address of HOST connects, 1 if none does.\n"
            "\n"
            "  -t, --timeout SECONDS   for each step, 5 if not given\n",
    .run = ping,
};

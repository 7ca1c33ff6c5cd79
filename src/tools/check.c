/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/child.h"
#include "tools/findings.h"
#include "tools/pages.h"
#include "tools/report.h"
#include "tools/tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ERROR_EXIT 99 /* what no program gives by accident */

struct choice {
    report *print;
    const char *output;
    const char *suppress;
    int error_exit;
};

static int list(void)
{
    for (enum iw_finding f = 0; f < IW_FINDINGS; f++) {
        const struct iw_finding_info *i = iw_finding_info(f);
        printf("%-19s %-8s %s\n", i->name, iw_finding_level(i->level), i->meaning);
    }
    return 0;
}

static int explain(const char *name)
{
    if (!page_print(stdout, name))
        tool_die(TOOL_USAGE,
                 "check: --explain %s: there is no such finding. "
                 "Try: anywarp check --list",
                 name);
    return 0;
}

static int number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || n > 255)
        tool_die(TOOL_USAGE, "check: --error-exit %s: is no exit status", text);
    return (int)n;
}

/** Makes the file of records. @return its absolute path, the caller's */
static char *make_records(void)
{
    const char *folder = getenv("TMPDIR");
    char *path;
    if (asprintf(&path, "%s/anywarp-check-XXXXXX", folder && *folder ? folder : "/tmp") < 0)
        tool_die(TOOL_FAILED, "out of memory");
    int fd = mkstemp(path);
    char *whole = fd < 0 ? NULL : realpath(path, NULL);
    if (!whole)
        tool_die(TOOL_FAILED, "check: %s: %s", path, strerror(errno));
    close(fd);
    free(path);
    return whole;
}

static void print(const struct choice *c, const struct findings *all, char **argv, int status)
{
    FILE *f = c->output ? fopen(c->output, "we") : stderr;
    if (!f)
        tool_die(TOOL_FAILED, "check: %s: %s", c->output, strerror(errno));
    c->print(f, all, argv, status);
    if (c->output && fclose(f) != 0)
        tool_die(TOOL_FAILED, "check: %s: %s", c->output, strerror(errno));
}

static int check_program(const struct choice *c, char **argv)
{
    struct findings all;
    char *records = make_records();
    setenv("ANYWARP_CHECK", records, 1);
    int status = child_run("check", argv);
    const char *wrong = findings_read(&all, records);
    unlink(records);
    if (wrong)
        tool_die(TOOL_FAILED, "check: %s: %s", records, wrong);
    wrong = c->suppress ? findings_suppress(&all, c->suppress) : NULL;
    if (wrong)
        tool_die(TOOL_USAGE, "check: --suppress %s: %s", c->suppress, wrong);
    print(c, &all, argv, status);
    if (all.level[IW_FINDING_ERROR])
        status = c->error_exit;
    findings_free(&all);
    free(records);
    return status;
}

static int check(int argc, char **argv)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'},   {"output", required_argument, NULL, 'o'},
        {"suppress", required_argument, NULL, 's'}, {"error-exit", required_argument, NULL, 'e'},
        {"list", no_argument, NULL, 'L'},           {"explain", required_argument, NULL, 'x'},
        {"record", required_argument, NULL, 'r'},   {0}};
    struct choice c = {.print = report_find("text"), .error_exit = ERROR_EXIT};
    for (int o; (o = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        switch (o) {
        case 'f':
            c.print = report_find(optarg);
            if (!c.print)
                tool_die(TOOL_USAGE, "check: --format %s: is none of text, json, junit, sarif",
                         optarg);
            break;
        case 'o':
            c.output = optarg;
            break;
        case 's':
            c.suppress = optarg;
            break;
        case 'e':
            c.error_exit = number(optarg);
            break;
        case 'r':
            setenv("ANYWARP_RECORD", optarg, 1);
            break;
        case 'L':
            return list();
        case 'x':
            return explain(optarg);
        default:
            return TOOL_USAGE;
        }
    }
    if (optind == argc)
        tool_die(TOOL_USAGE, "check: which command? Try: anywarp check rping -s");
    if (c.suppress && access(c.suppress, R_OK) != 0)
        tool_die(TOOL_USAGE, "check: --suppress %s: %s", c.suppress, strerror(errno));
    return check_program(&c, argv + optind);
}

const struct tool tool_check = {
    .name = "check",
    .arguments = "[--format text|json|junit|sarif] [--output FILE]\n"
                 "           [--suppress FILE] [--error-exit N] [--record FILE]\n"
                 "           [--list] [--explain NAME] [--] COMMAND [ARGUMENT...]",
    .summary = "run a program, and tell what it does wrong",
    .help = "Runs the program on anywarp, and tells what it does wrong although it works\n"
            "here: buffers that change too early, wake-ups that are lost, queues that are\n"
            "too small, calls on what is destroyed. Each finding has the call it is about,\n"
            "and what to do. Errors set the exit status; without one it is the program's.\n"
            "\n"
            "  --format FORMAT   text, json, junit or sarif\n"
            "  --output FILE     print there; else to standard error\n"
            "  --suppress FILE   leave out what stands there: in each line the name of a\n"
            "                    finding, and patterns for functions, files or programs\n"
            "  --error-exit N    the exit status if there is an error, 99\n"
            "  --record FILE     keep the last calls and frames there, for \"anywarp\n"
            "                    record\" after a crash or in a hang\n"
            "  --list            print the findings\n"
            "  --explain NAME    print the page of a finding, with wrong and right code\n",
    .run = check,
};

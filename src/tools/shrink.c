/* SPDX-License-Identifier: BSD-2-Clause */
/* The fewest faults of a log that still give the same outcome: delta debugging. */
#include "tools/chaos.h"
#include "tools/tool.h"
#include "tools/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct faults {
    char **line;
    size_t n;
};

static struct {
    uint64_t seed;
    unsigned seconds; /* a run that takes longer hangs */
    char **argv;
    char path[64]; /* the log of the run */
    unsigned runs;
} shrinking = {.seconds = 60, .path = "/tmp/anywarp-shrink-XXXXXX"};

static struct faults read_log(const char *path)
{
    struct faults f = {0};
    char *line = NULL;
    size_t room = 0;
    FILE *in = fopen(path, "re");
    while (in && getline(&line, &room, in) > 0) {
        if (*line == '#')
            continue;
        f.line = realloc(f.line, (f.n + 1) * sizeof(*f.line));
        if (!f.line || !(f.line[f.n++] = strdup(line)))
            tool_die(TOOL_FAILED, "out of memory");
    }
    free(line);
    if (in)
        fclose(in);
    return f;
}

static void write_log(FILE *out, const struct faults *f)
{
    fprintf(out, CHAOS_HEAD "%" PRIu64 "\n", shrinking.seed);
    for (size_t i = 0; i < f->n; i++)
        fputs(f->line[i], out);
}

/** Runs the program with exactly these faults. */
static int outcome(const struct faults *f)
{
    FILE *out = fopen(shrinking.path, "we");
    if (!out)
        tool_die(TOOL_FAILED, "shrink: %s: %s", shrinking.path, strerror(errno));
    write_log(out, f);
    if (fclose(out) != 0)
        tool_die(TOOL_FAILED, "shrink: %s: %s", shrinking.path, strerror(errno));
    shrinking.runs++;
    struct trial t = {.argv = shrinking.argv, .seconds = shrinking.seconds};
    int status = trial_run(&t);
    if (t.interrupted) {
        unlink(shrinking.path);
        tool_die(TOOL_FAILED, "shrink: interrupted");
    }
    return status;
}

/** Whether the outcome is the same without @p n faults from @p first on; then they go. */
static bool without(struct faults *f, size_t first, size_t n, int want)
{
    struct faults rest = {malloc(f->n * sizeof(*rest.line)), f->n - n};
    if (!rest.line)
        tool_die(TOOL_FAILED, "out of memory");
    memcpy(rest.line, f->line, first * sizeof(*rest.line));
    memcpy(rest.line + first, f->line + first + n, (rest.n - first) * sizeof(*rest.line));
    bool same = outcome(&rest) == want;
    if (same)
        *f = rest;
    else
        free(rest.line);
    return same;
}

static void reduce(struct faults *f, int want)
{
    size_t chunk = f->n;
    while (chunk) {
        for (size_t at = 0; at < f->n;) {
            size_t n = f->n - at < chunk ? f->n - at : chunk;
            if (!without(f, at, n, want))
                at += n;
        }
        chunk /= 2;
    }
}

static int shrink(int argc, char **argv)
{
    static const struct option options[] = {{"timeout", required_argument, NULL, 't'}, {0}};
    for (int o; (o = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        if (o != 't')
            return TOOL_USAGE;
        char *end;
        unsigned long n = strtoul(optarg, &end, 10);
        if (*end || n < 1 || n > 86400)
            tool_die(TOOL_USAGE, "shrink: --timeout %s: should be 1 to 86400 seconds", optarg);
        shrinking.seconds = (unsigned)n;
    }
    if (argc - optind < 2)
        tool_die(TOOL_USAGE, "shrink: which log, which command? Try: anywarp shrink --help");
    const char *log = argv[optind++];
    if (!strcmp(argv[optind], "--") && !argv[++optind])
        tool_die(TOOL_USAGE, "shrink: which command?");
    shrinking.seed = chaos_seed_of(log);
    shrinking.argv = argv + optind;
    struct faults f = read_log(log);
    int fd = mkostemp(shrinking.path, O_CLOEXEC);
    char plan[128];
    if (fd < 0)
        tool_die(TOOL_FAILED, "shrink: %s: %s", shrinking.path, strerror(errno));
    close(fd);
    snprintf(plan, sizeof(plan), "seed=%" PRIu64 ",replay=%s", shrinking.seed, shrinking.path);
    setenv("ANYWARP_CHAOS", plan, 1);
    setenv("ANYWARP_CRC", "on", 0);
    size_t all = f.n;
    int want = outcome(&f), status = want ? 0 : TOOL_FAILED;
    if (want)
        reduce(&f, want);
    unlink(shrinking.path);
    if (!want)
        fprintf(stderr, "anywarp: shrink: it does not fail with these faults\n");
    else
        fprintf(stderr, "anywarp: shrink: exit status %d with %zu of %zu faults, %u runs\n", want,
                f.n, all, shrinking.runs);
    if (want)
        write_log(stdout, &f);
    return status;
}

const struct tool tool_shrink = {
    .name = "shrink",
    .arguments = "[--timeout SECONDS] LOG [--] COMMAND [ARGUMENT...]",
    .summary = "find the fewest faults with which a program still fails",
    .help = "Runs the program with fewer and fewer faults of a log of \"anywarp chaos\", and\n"
            "prints, as a log, those without any of which the exit status is another. The\n"
            "status must not be 0 with all of them. What the program prints is not shown.\n"
            "\n"
            "  --timeout SECONDS   a run that takes longer is ended, and has status 124; 60\n",
    .run = shrink,
};

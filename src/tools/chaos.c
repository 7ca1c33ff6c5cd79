/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/chaos.h"

#include "faults/plan.h"
#include "tools/child.h"
#include "tools/shell.h"
#include "tools/sweep.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SWEEP_SECONDS 300

struct choice {
    uint64_t seed;
    bool seeded, placement;
    const char *every, *only, *log, *replay;
    const char *at; /* the one fault that happens */
    bool sweep, json;
    unsigned seconds; /* 0: the default */
};

static int list(void)
{
    for (enum iw_fault f = 0; f < IW_FAULTS; f++) {
        const struct iw_fault_info *i = iw_fault_info(f);
        printf("%-21s 1 in %-5u %s\n", i->name, i->every, i->meaning);
    }
    return 0;
}

uint64_t chaos_seed_of(const char *path)
{
    char line[256];
    uint64_t seed = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        tool_die(TOOL_USAGE, "%s: %s", path, strerror(errno));
    bool found = fgets(line, sizeof(line), f) && sscanf(line, CHAOS_HEAD "%" SCNu64, &seed) == 1;
    fclose(f);
    if (!found)
        tool_die(TOOL_USAGE, "%s: is no log of anywarp chaos", path);
    return seed;
}

static uint64_t new_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec + (uint64_t)getpid()) % 1000000;
}

/** Begins the log. @return its absolute path, the caller's; programs may change their folder */
static char *begin_log(const struct choice *c, char *unnamed)
{
    int fd = c->log ? open(c->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)
                    : mkostemp(unnamed, O_CLOEXEC);
    const char *name = c->log ? c->log : unnamed;
    char *path = fd < 0 ? NULL : realpath(name, NULL);
    if (!path || dprintf(fd, CHAOS_HEAD "%" PRIu64 "\n", c->seed) < 0)
        tool_die(TOOL_FAILED, "chaos: %s: %s", name, strerror(errno));
    close(fd);
    return path;
}

/** The whole plan, as the libraries read it, checked here where somebody can be told. */
static void set_plan(const struct choice *c, const char *log)
{
    struct iw_plan plan;
    char *replay = NULL, *text;
    if (c->replay && !(replay = realpath(c->replay, NULL)))
        tool_die(TOOL_USAGE, "chaos: --replay %s: %s", c->replay, strerror(errno));
    if (asprintf(&text, "seed=%" PRIu64 "%s%s%s%s%s,log=%s%s%s", c->seed,
                 c->placement ? ",placement=on" : "", c->every ? ",every=" : "",
                 c->every ? c->every : "", c->only ? ",only=" : "", c->only ? c->only : "", log,
                 replay ? ",replay=" : "", replay ? replay : "") < 0)
        tool_die(TOOL_FAILED, "out of memory");
    const char *wrong = iw_plan_parse(&plan, text);
    if (wrong)
        tool_die(TOOL_USAGE, "chaos: %s. Try: anywarp chaos --list", wrong);
    setenv("ANYWARP_CHAOS", text, 1);
    free(replay);
    free(text);
}

static unsigned count(const char *log, unsigned counts[IW_FAULTS])
{
    char line[512], name[64];
    unsigned total = 0;
    FILE *f = fopen(log, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (*line == '#' || sscanf(line, "%*s %63s", name) != 1)
            continue;
        enum iw_fault fault = iw_fault_find(name);
        if (fault < IW_FAULTS) {
            counts[fault]++;
            total++;
        }
    }
    if (f)
        fclose(f);
    return total;
}

static void print_again(const struct choice *c, char **argv)
{
    fputs("anywarp: again: anywarp chaos", stderr);
    if (c->at) {
        fprintf(stderr, " --at '%s'", c->at);
        shell_words(stderr, argv);
        fputc('\n', stderr);
        return;
    }
    fprintf(stderr, " --seed %" PRIu64, c->seed);
    if (c->every)
        fprintf(stderr, " --every %s", c->every);
    if (c->only)
        fprintf(stderr, " --only %s", c->only);
    if (c->placement)
        fputs(" --placement", stderr);
    if (c->replay)
        fprintf(stderr, " --replay %s", c->replay);
    shell_words(stderr, argv);
    fputc('\n', stderr);
}

static void summarize(const struct choice *c, const char *log, int status, char **argv)
{
    unsigned counts[IW_FAULTS] = {0}, total = count(log, counts);
    fprintf(stderr, "anywarp: chaos: %u fault%s, seed %" PRIu64 ", exit status %d\n", total,
            total == 1 ? "" : "s", c->seed, status);
    for (enum iw_fault f = 0; f < IW_FAULTS; f++)
        if (counts[f])
            fprintf(stderr, "anywarp: %7u %s\n", counts[f], iw_fault_info(f)->name);
    print_again(c, argv);
}

/** The names with what is between them in a plan, where commas part the settings. */
static char *with_plus(char *names)
{
    for (char *s = names; (s = strchr(s, ','));)
        *s = '+';
    return names;
}

static unsigned long number(const char *option, const char *text, unsigned long most)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || *text < '0' || *text > '9' || errno || n < 1 || n > most)
        tool_die(TOOL_USAGE, "chaos: --%s %s: should be 1 to %lu", option, text, most);
    return n;
}

static void take_option(struct choice *c, int option)
{
    char *end;
    switch (option) {
    case 's':
        c->seed = strtoull(optarg, &end, 10);
        if (*end || *optarg < '0' || *optarg > '9')
            tool_die(TOOL_USAGE, "chaos: --seed %s: is no number", optarg);
        c->seeded = true;
        break;
    case 'o':
        c->only = with_plus(optarg);
        break;
    case 'e':
        c->every = optarg;
        break;
    case 'l':
        c->log = optarg;
        break;
    case 'r':
        c->replay = optarg;
        break;
    case 'a':
        c->at = optarg;
        break;
    case 'p':
        c->placement = true;
        break;
    case 'S':
        c->sweep = true;
        break;
    case 'j':
        c->json = true;
        break;
    case 'R':
        setenv("ANYWARP_RECORD", optarg, 1);
        break;
    case 'n':
        c->seconds = (unsigned)number("seconds", optarg, 86400);
        break;
    }
}

/** A file in the folder for such, for mkostemp(). */
static void name_file(char path[PATH_MAX])
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, PATH_MAX, "%s/anywarp-chaos-XXXXXX", folder && *folder ? folder : "/tmp");
}

/** A log of one line, as a replay. */
static void write_at(struct choice *c, char path[PATH_MAX])
{
    name_file(path);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || dprintf(fd, CHAOS_HEAD "0\n%s\n", c->at) < 0)
        tool_die(TOOL_FAILED, "chaos: %s: %s", path, strerror(errno));
    close(fd);
    c->replay = path;
}

static void check(const struct choice *c)
{
    bool drawn = c->seeded || c->only || c->every || c->placement;
    if (c->log && c->replay && !strcmp(c->log, c->replay))
        tool_die(TOOL_USAGE, "chaos: --log and --replay are the same file");
    if (c->at && (drawn || c->replay))
        tool_die(TOOL_USAGE, "chaos: --at says which fault happens: nothing else does");
    if (c->sweep && (drawn || c->replay || c->at || c->log))
        tool_die(TOOL_USAGE, "chaos: --sweep has each call fail: nothing else says what happens");
    if (!c->sweep && (c->json || c->seconds))
        tool_die(TOOL_USAGE, "chaos: --json and --seconds go with --sweep");
}

static int chaos(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"every", required_argument, NULL, 'e'},
                                            {"placement", no_argument, NULL, 'p'},
                                            {"log", required_argument, NULL, 'l'},
                                            {"replay", required_argument, NULL, 'r'},
                                            {"at", required_argument, NULL, 'a'},
                                            {"sweep", no_argument, NULL, 'S'},
                                            {"seconds", required_argument, NULL, 'n'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"list", no_argument, NULL, 'L'},
                                            {"record", required_argument, NULL, 'R'},
                                            {0}};
    struct choice c = {0};
    char unnamed[PATH_MAX], at[PATH_MAX];
    for (int o; (o = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        if (o == '?')
            return TOOL_USAGE;
        if (o == 'L')
            return list();
        take_option(&c, o);
    }
    check(&c);
    if (optind == argc)
        tool_die(TOOL_USAGE, "chaos: which command? Try: anywarp chaos rping -s");
    setenv("ANYWARP_CRC", "on", 0); /* what is corrupt must be found, or the program is blamed */
    if (c.sweep)
        return sweep(&(struct sweep){.argv = argv + optind,
                                     .budget = c.seconds ? c.seconds : SWEEP_SECONDS,
                                     .json = c.json});
    if (c.at)
        write_at(&c, at);
    else if (c.replay)
        c.seed = chaos_seed_of(c.replay);
    else if (!c.seeded)
        c.seed = new_seed();
    name_file(unnamed);
    char *log = begin_log(&c, unnamed);
    set_plan(&c, log);
    int status = child_run("chaos", argv + optind);
    summarize(&c, log, status, argv + optind);
    if (!c.log)
        unlink(log);
    if (c.at)
        unlink(at);
    free(log);
    return status;
}

const struct tool tool_chaos = {
    .name = "chaos",
    .arguments = "[--seed N] [--only NAME,...] [--every N] [--placement]\n"
                 "           [--log FILE] [--replay FILE] [--at FAULT] [--sweep]\n"
                 "           [--seconds N] [--json] [--record FILE] [--list] [--]\n"
                 "           COMMAND [ARGUMENT...]",
    .summary = "run a program, and have things go wrong",
    .help = "Runs the program on anywarp, and makes happen what rarely happens: calls that\n"
            "fail, connections that are cut or refused, completions in error, late, or\n"
            "several at once, events that nobody expects. The same seed gives the same\n"
            "faults. At the end standard error has a summary, and the command that repeats\n"
            "it; the exit status is the program's.\n"
            "\n"
            "  --seed N          by which the faults are chosen; else one is made up\n"
            "  --only NAME,...   only these\n"
            "  --every N         each once in N calls, in place of its own rate\n"
            "  --placement       the bytes of RDMA Writes land in pieces, in any order,\n"
            "                    late; without --only nothing else happens\n"
            "  --log FILE        write each fault to this file, a line each\n"
            "  --replay FILE     have exactly those happen that are in this log\n"
            "  --at FAULT        have exactly this one happen, a line of a log\n"
            "  --sweep           have each call of the program that can fail do so once,\n"
            "                    in a run of its own, and print which of these runs\n"
            "                    crashed, hung or left objects or descriptors\n"
            "  --seconds N       with --sweep: how long in all, 300\n"
            "  --json            with --sweep: print an object of JSON\n"
            "  --record FILE     keep the last calls and frames there, for \"anywarp\n"
            "                    record\" after a crash or in a hang\n"
            "  --list            print the faults and their rates\n",
    .run = chaos,
};

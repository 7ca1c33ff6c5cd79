/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/chaos.h"

#include "faults/plan.h"
#include "tools/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct choice {
    uint64_t seed;
    bool seeded;
    const char *every, *only, *log, *replay;
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
    if (asprintf(&text, "seed=%" PRIu64 "%s%s%s%s,log=%s%s%s", c->seed, c->every ? ",every=" : "",
                 c->every ? c->every : "", c->only ? ",only=" : "", c->only ? c->only : "", log,
                 replay ? ",replay=" : "", replay ? replay : "") < 0)
        tool_die(TOOL_FAILED, "out of memory");
    const char *wrong = iw_plan_parse(&plan, text);
    if (wrong)
        tool_die(TOOL_USAGE, "chaos: %s. Try: anywarp chaos --list", wrong);
    setenv("ANYWARP_CHAOS", text, 1);
    setenv("ANYWARP_CRC", "on", 0); /* what is corrupt must be found, or the program is blamed */
    free(replay);
    free(text);
}

static pid_t child;

static void pass_on(int signal)
{
    kill(child, signal);
}

/** Runs the program to its end. @return its exit status as a shell tells it */
static int run_program(char **argv)
{
    int status;
    child = fork();
    if (child < 0)
        tool_die(TOOL_FAILED, "chaos: fork: %s", strerror(errno));
    if (child == 0)
        tool_exec(argv);
    signal(SIGINT, SIG_IGN); /* the terminal sends it to the program as well */
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            tool_die(TOOL_FAILED, "chaos: waitpid: %s", strerror(errno));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
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
    fprintf(stderr, "anywarp: again: anywarp chaos --seed %" PRIu64, c->seed);
    if (c->every)
        fprintf(stderr, " --every %s", c->every);
    if (c->only)
        fprintf(stderr, " --only %s", c->only);
    if (c->replay)
        fprintf(stderr, " --replay %s", c->replay);
    for (; *argv; argv++)
        fprintf(stderr, " %s", *argv);
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

static int chaos(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"every", required_argument, NULL, 'e'},
                                            {"log", required_argument, NULL, 'l'},
                                            {"replay", required_argument, NULL, 'r'},
                                            {"list", no_argument, NULL, 'L'},
                                            {0}};
    struct choice c = {0};
    char *end;
    for (int o; (o = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        switch (o) {
        case 's':
            c.seed = strtoull(optarg, &end, 10);
            if (*end || *optarg < '0' || *optarg > '9')
                tool_die(TOOL_USAGE, "chaos: --seed %s: is no number", optarg);
            c.seeded = true;
            break;
        case 'o':
            c.only = with_plus(optarg);
            break;
        case 'e':
            c.every = optarg;
            break;
        case 'l':
            c.log = optarg;
            break;
        case 'r':
            c.replay = optarg;
            break;
        case 'L':
            return list();
        default:
            return TOOL_USAGE;
        }
    }
    if (optind == argc)
        tool_die(TOOL_USAGE, "chaos: which command? Try: anywarp chaos rping -s");
    if (c.replay)
        c.seed = chaos_seed_of(c.replay);
    else if (!c.seeded)
        c.seed = new_seed();
    const char *folder = getenv("TMPDIR");
    char unnamed[PATH_MAX];
    snprintf(unnamed, sizeof(unnamed), "%s/anywarp-chaos-XXXXXX",
             folder && *folder ? folder : "/tmp");
    if (c.log && c.replay && !strcmp(c.log, c.replay))
        tool_die(TOOL_USAGE, "chaos: --log and --replay are the same file");
    char *log = begin_log(&c, unnamed);
    set_plan(&c, log);
    int status = run_program(argv + optind);
    summarize(&c, log, status, argv + optind);
    if (!c.log)
        unlink(log);
    free(log);
    return status;
}

const struct tool tool_chaos = {
    .name = "chaos",
    .arguments = "[--seed N] [--only NAME,...] [--every N] [--log FILE]\n"
                 "           [--replay FILE] [--list] [--] COMMAND [ARGUMENT...]",
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
            "  --log FILE        write each fault to this file, a line each\n"
            "  --replay FILE     have exactly those happen that are in this log\n"
            "  --list            print the faults and their rates\n",
    .run = chaos,
};

/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sweep.h"

#include "tools/chaos.h"
#include "tools/network.h"
#include "tools/tool.h"
#include "tools/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMIT_TIMES   3 /* a run may take so many times what the first took */
#define LIMIT_SECONDS 3 /* and so much longer */
#define LOOKING_FOR   "Sanitizer: "
#define WORDS         400 /* of what a command printed last */
#define LINE          512
#define FOLDER        224 /* a plan takes no longer names */

/* The files of a sweep, in a folder of its own. */
static struct {
    char folder[FOLDER];
    char places[FOLDER + 16], log[FOLDER + 16], replay[FOLDER + 16], output[FOLDER + 16];
} files;

static void make_folder(void)
{
    const char *in = getenv("TMPDIR");
    int n = snprintf(files.folder, sizeof(files.folder), "%s/anywarp-sweep-XXXXXX",
                     in && *in ? in : "/tmp");
    if (n >= FOLDER)
        tool_die(TOOL_FAILED, "chaos: %s: is too long", in);
    if (!mkdtemp(files.folder))
        tool_die(TOOL_FAILED, "chaos: %s: %s", files.folder, strerror(errno));
    snprintf(files.places, sizeof(files.places), "%s/places", files.folder);
    snprintf(files.log, sizeof(files.log), "%s/log", files.folder);
    snprintf(files.replay, sizeof(files.replay), "%s/replay", files.folder);
    snprintf(files.output, sizeof(files.output), "%s/output", files.folder);
}

static void remove_folder(void)
{
    unlink(files.places);
    unlink(files.log);
    unlink(files.replay);
    unlink(files.output);
    rmdir(files.folder);
}

static _Noreturn void give_up(const char *why)
{
    remove_folder();
    tool_die(TOOL_FAILED, "chaos: %s", why);
}

static struct iw_places *make_places(void)
{
    int fd = open(files.places, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool made = fd >= 0 && ftruncate(fd, sizeof(struct iw_places)) == 0;
    if (fd >= 0)
        close(fd);
    struct iw_places *p = made ? iw_places_map(files.places) : NULL;
    if (!p)
        give_up("no room for a list of calls");
    return p;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    bool written = f && fputs(text, f) >= 0;
    if ((f && fclose(f) != 0) || !written)
        give_up("no room for a log");
}

static int run(const struct sweep *s, const char *plan, double seconds)
{
    char text[LINE * 3];
    struct trial t = {
        .argv = s->argv, .seconds = seconds, .own_network = s->own_network, .output = files.output};
    write_file(files.log, "");
    snprintf(text, sizeof(text), "seed=0,ends=on,log=%s,%s", files.log, plan);
    setenv("ANYWARP_CHAOS", text, 1);
    int status = trial_run(&t);
    if (t.interrupted)
        give_up("interrupted");
    return status;
}

/** The end of what the command printed. @return heap, or NULL: nothing */
static char *last_words(void)
{
    char text[WORDS + 1];
    FILE *f = fopen(files.output, "re");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    fseek(f, size > WORDS ? size - WORDS : 0, SEEK_SET);
    text[fread(text, 1, WORDS, f)] = '\0';
    fclose(f);
    return *text ? strdup(text) : NULL;
}

/** Whether a sanitizer of the program has something to say. */
static bool sanitizer_spoke(void)
{
    char line[LINE];
    bool found = false;
    FILE *f = fopen(files.output, "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = strstr(line, LOOKING_FOR) || strstr(line, "runtime error: ");
    if (f)
        fclose(f);
    return found;
}

/* ---- what is left ---- */

#define KINDS 7
static const char *const kinds[KINDS] = {"pd", "mr", "mw", "cq", "srq", "qp", "fd"};

/** All processes of a name with those arguments. */
struct left {
    char process[160];
    long long count[KINDS];
};

struct lefts {
    struct left *of; /* heap */
    size_t n;
};

static struct left *left_of(struct lefts *l, const char *process, bool add)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->of[i].process, process))
            return &l->of[i];
    if (!add)
        return NULL;
    struct left *more = realloc(l->of, (l->n + 1) * sizeof(*more));
    if (!more)
        give_up("out of memory");
    l->of = more;
    more += l->n++;
    *more = (struct left){0};
    snprintf(more->process, sizeof(more->process), "%s", process);
    return more;
}

static void add_left(struct lefts *l, char *words)
{
    char *rest = words, *process = strsep(&rest, " ");
    struct left *of = left_of(l, process, true);
    for (char *kind; (kind = strsep(&rest, " "));) {
        char *count = strsep(&rest, " ");
        for (int k = 0; count && k < KINDS; k++)
            if (!strcmp(kinds[k], kind))
                of->count[k] += atoll(count);
    }
}

/** What a process left that it did not leave at first, if it came to its end then. */
static bool compare(struct lefts *base, const struct left *now, struct sweep_fault *f)
{
    struct left *then = left_of(base, now->process, false);
    size_t at = 0;
    for (int k = 0; then && k < KINDS; k++) {
        long long more = now->count[k] - then->count[k];
        if (more > 0 && at < sizeof(f->left))
            at += (size_t)snprintf(f->left + at, sizeof(f->left) - at, "%s%s +%lld", at ? " " : "",
                                   kinds[k], more);
    }
    if (at)
        snprintf(f->who, sizeof(f->who), "%s", now->process);
    return at != 0;
}

/* ---- runs ---- */

struct heard {
    bool met;          /* the fault happened */
    int signal;        /* a process crashed, 0: none */
    char who[160];     /* that process */
    struct lefts left; /* those that came to their end */
};

static void hear(struct heard *h)
{
    char line[LINE];
    *h = (struct heard){0};
    FILE *f = fopen(files.log, "re");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line != '#')
            h->met = true;
        else if (!strncmp(line, "# left ", 7))
            add_left(&h->left, line + 7);
        else if (sscanf(line, "# crashed %159s %d", h->who, &h->signal) != 2)
            h->signal = 0;
    }
    if (f)
        fclose(f);
}

static bool is_crash(int status)
{
    int signal = status - 128;
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE ||
           signal == SIGILL;
}

static void judge(struct sweep_fault *f, const struct heard *h, struct lefts *base)
{
    f->outcome = h->met ? SWEEP_FINE : SWEEP_NOT_MET;
    for (size_t i = 0; h->met && i < h->left.n; i++)
        if (compare(base, &h->left.of[i], f)) {
            f->outcome = SWEEP_LEFT;
            break;
        }
    if (h->met && f->status == TRIAL_HUNG)
        f->outcome = SWEEP_HUNG;
    if (h->met && (h->signal || is_crash(f->status) || sanitizer_spoke())) {
        f->outcome = SWEEP_CRASHED;
        f->signal = h->signal ? h->signal : is_crash(f->status) ? f->status - 128 : 0;
        snprintf(f->who, sizeof(f->who), "%s", h->signal ? h->who : "");
    }
    if (f->outcome > SWEEP_FINE)
        f->last_words = last_words();
}

void sweep_coordinates(char *line, size_t size, const struct sweep_fault *f)
{
    const struct iw_place *p = f->place;
    iw_plan_line(line, (unsigned)size, p->process, iw_fault_find(p->fault), p->kind, f->number,
                 f->call);
}

static void try_one(const struct sweep *s, struct sweep_fault *f, struct lefts *base)
{
    char line[LINE], text[LINE * 2], plan[LINE * 2];
    struct heard h;
    sweep_coordinates(line, sizeof(line), f);
    snprintf(text, sizeof(text), CHAOS_HEAD "0\n%s\n", line);
    write_file(files.replay, text);
    snprintf(plan, sizeof(plan), "replay=%s", files.replay);
    f->status = run(s, plan, s->limit);
    if (f->status == TRIAL_HUNG) /* others may have kept the machine busy */
        f->status = run(s, plan, s->limit);
    hear(&h);
    judge(f, &h, base);
    free(h.left.of);
}

/** Runs it with no fault, and makes the list of those that there are. */
static void first_run(struct sweep *s, struct iw_places *places, struct lefts *base)
{
    char plan[LINE * 2];
    struct heard h;
    snprintf(plan, sizeof(plan), "places=%s", files.places);
    double began = trial_now();
    int status = run(s, plan, s->budget);
    s->baseline = trial_now() - began;
    hear(&h);
    if (status == 0 && !h.signal) {
        *base = h.left;
        return;
    }
    free(h.left.of);
    if (s->own_network) { /* there may be something in the host's that it needs */
        s->own_network = false;
        memset(places, 0, sizeof(*places));
        first_run(s, places, base);
        return;
    }
    char *words = last_words();
    remove_folder();
    if (status == TRIAL_HUNG)
        tool_die(TOOL_FAILED, "chaos: without any fault it does not end in %.0f s", s->budget);
    tool_die(TOOL_FAILED, "chaos: without any fault its exit status is %d%s%s", status,
             words ? ":\n" : "", words ? words : "");
}

static void add_fault(struct sweep *s, const struct iw_place *p, uint64_t number, uint64_t call)
{
    s->fault[s->n++] = (struct sweep_fault){.place = p, .number = number, .call = call};
}

/** Two threads may have noted the same place. */
static bool is_first(const struct iw_places *places, size_t i)
{
    const struct iw_place *p = &places->place[i];
    for (size_t k = 0; k < i; k++) {
        const struct iw_place *q = &places->place[k];
        if (!strcmp(p->process, q->process) && !strcmp(p->fault, q->fault) &&
            !strcmp(p->stack, q->stack))
            return false;
    }
    return true;
}

/* First calls before last ones: there may not be time for all. */
static void list_faults(struct sweep *s, const struct iw_places *places)
{
    size_t n = places->next < IW_PLACES ? places->next : IW_PLACES;
    s->fault = calloc(2 * n + 1, sizeof(*s->fault));
    if (!s->fault)
        give_up("out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct iw_place *p = &places->place[i];
        if (__atomic_load_n(&p->whole, __ATOMIC_ACQUIRE) && is_first(places, i))
            add_fault(s, p, p->first_number, p->first_call);
    }
    s->places = (unsigned)s->n;
    for (size_t i = 0; i < s->places; i++) {
        const struct iw_place *p = s->fault[i].place;
        if (p->calls > 1)
            add_fault(s, p, p->last_number, p->last_call);
    }
}

unsigned sweep_count(const struct sweep *s, enum outcome outcome)
{
    unsigned n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->fault[i].outcome == outcome;
    return n;
}

int sweep(struct sweep *s)
{
    double began = trial_now();
    struct lefts base = {0};
    make_folder();
    struct iw_places *places = make_places();
    s->own_network = network_may();
    first_run(s, places, &base);
    list_faults(s, places);
    s->limit = s->baseline * LIMIT_TIMES + LIMIT_SECONDS;
    for (size_t i = 0; i < s->n && trial_now() - began < s->budget; i++)
        try_one(s, &s->fault[i], &base);
    s->seconds = trial_now() - began;
    sweep_report(s);
    remove_folder();
    for (size_t i = 0; i < s->n; i++)
        free(s->fault[i].last_words);
    free(s->fault);
    free(base.of);
    munmap(places, sizeof(*places));
    return sweep_count(s, SWEEP_CRASHED) || sweep_count(s, SWEEP_HUNG) ? TOOL_FAILED : 0;
}

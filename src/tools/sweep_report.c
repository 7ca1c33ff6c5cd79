/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/frame.h"
#include "tools/shell.h"
#include "tools/sweep.h"
#include "tools/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 6 /* that are shown */

static const char *const words[] = {
    [SWEEP_UNTRIED] = "untried", [SWEEP_NOT_MET] = "not met", [SWEEP_FINE] = "fine",
    [SWEEP_LEFT] = "left",       [SWEEP_HUNG] = "hung",       [SWEEP_CRASHED] = "crashed",
};

static const char *meaning(const struct sweep_fault *f)
{
    enum iw_fault fault = iw_fault_find(f->place->fault);
    return fault < IW_FAULTS ? iw_fault_info(fault)->meaning : f->place->fault;
}

/** Whether a frame is of what is below every main(). */
static bool is_below(const char *frame)
{
    return strstr(frame, "/libc.so") || strstr(frame, "/ld-linux") || !strncmp(frame, "_start", 6);
}

/** Calls @p show for the names of frames, innermost first. */
static void each_frame(const struct sweep_fault *f, void (*show)(unsigned i, const char *name))
{
    char *copy = strdup(f->place->stack), *rest = copy, name[512];
    unsigned shown = 0;
    for (char *frame; rest && shown < FRAMES && (frame = strsep(&rest, " "));) {
        if (!*frame || is_below(frame))
            continue;
        frame_name(name, sizeof(name), frame);
        if (!is_below(name))
            show(shown++, name);
    }
    free(copy);
}

static void print_again(FILE *to, const struct sweep *s, const struct sweep_fault *f)
{
    char line[512];
    sweep_coordinates(line, sizeof(line), f);
    fprintf(to, "anywarp chaos --at '%s'", line);
    shell_words(to, s->argv);
}

/* ---- for people ---- */

static void print_frame(unsigned i, const char *name)
{
    printf("  %-9s %s\n", i ? "" : "called by", name);
}

static void print_words(const char *text)
{
    char *copy = strdup(text), *rest = copy;
    const char *label = "it said";
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line)
            text_wrap(stdout, 12, label, line);
        label = "";
    }
    free(copy);
}

static void print_finding(const struct sweep *s, const struct sweep_fault *f)
{
    printf("\n%s: %s\n", words[f->outcome], meaning(f));
    if (f->outcome == SWEEP_CRASHED && f->signal)
        printf("  %-9s %s%s%s\n", "by", strsignal(f->signal), *f->who ? ", " : "", f->who);
    if (f->outcome == SWEEP_LEFT)
        printf("  %-9s %s, %s\n", "more", f->left, f->who);
    each_frame(f, print_frame);
    if (f->outcome != SWEEP_LEFT && f->last_words)
        print_words(f->last_words);
    printf("  %-9s ", "again");
    print_again(stdout, s, f);
    putchar('\n');
}

static void print_text(const struct sweep *s)
{
    unsigned untried = sweep_count(s, SWEEP_UNTRIED);
    printf("%u places, %zu faults, %zu tried in %.0f s, on %s network\n", s->places, s->n,
           s->n - untried, s->seconds, s->own_network ? "its own" : "the host's");
    printf("%u crashed, %u hung, %u left something, %u fine, %u not met\n",
           sweep_count(s, SWEEP_CRASHED), sweep_count(s, SWEEP_HUNG), sweep_count(s, SWEEP_LEFT),
           sweep_count(s, SWEEP_FINE), sweep_count(s, SWEEP_NOT_MET));
    for (enum outcome o = SWEEP_CRASHED; o >= SWEEP_LEFT; o--)
        for (size_t i = 0; i < s->n; i++)
            if (s->fault[i].outcome == o)
                print_finding(s, &s->fault[i]);
}

/* ---- for programs ---- */

static void print_json_frame(unsigned i, const char *name)
{
    if (i)
        fputs(", ", stdout);
    json_string(stdout, name);
}

static void print_json_fault(const struct sweep *s, const struct sweep_fault *f)
{
    char *again = NULL, line[512];
    size_t size;
    FILE *text = open_memstream(&again, &size);
    if (text) {
        print_again(text, s, f);
        fclose(text);
    }
    sweep_coordinates(line, sizeof(line), f);
    printf("    {");
    json_member(stdout, "outcome", words[f->outcome]);
    json_member(stdout, "fault", f->place->fault);
    json_member(stdout, "meaning", meaning(f));
    json_member(stdout, "at", line);
    json_member(stdout, "process", *f->who ? f->who : f->place->process);
    json_member(stdout, "left", *f->left ? f->left : NULL);
    json_member(stdout, "output", f->last_words);
    json_member(stdout, "again", again);
    printf("\"calls\": %" PRIu64 ", \"status\": %d, \"signal\": %d, \"stack\": [", f->place->calls,
           f->status, f->signal);
    if (f->outcome >= SWEEP_LEFT)
        each_frame(f, print_json_frame);
    printf("]}");
    free(again);
}

static void print_json(const struct sweep *s)
{
    printf("{\"places\": %u, \"faults\": %zu, \"tried\": %zu, \"seconds\": %.1f, "
           "\"own_network\": %s,\n \"crashed\": %u, \"hung\": %u, \"left\": %u, \"fine\": %u, "
           "\"not_met\": %u,\n \"runs\": [",
           s->places, s->n, s->n - sweep_count(s, SWEEP_UNTRIED), s->seconds,
           s->own_network ? "true" : "false", sweep_count(s, SWEEP_CRASHED),
           sweep_count(s, SWEEP_HUNG), sweep_count(s, SWEEP_LEFT), sweep_count(s, SWEEP_FINE),
           sweep_count(s, SWEEP_NOT_MET));
    for (size_t i = 0; i < s->n; i++) {
        fputs(i ? ",\n" : "\n", stdout);
        print_json_fault(s, &s->fault[i]);
    }
    puts("]}");
}

void sweep_report(const struct sweep *s)
{
    (s->json ? print_json : print_text)(s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/findings.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/** Cuts the text off at @p end. @return what comes behind, or NULL if there is no such end */
static char *cut(char *text, char end)
{
    char *at = text ? strchr(text, end) : NULL;
    if (!at)
        return NULL;
    *at = '\0';
    return at + 1;
}

static void take_frames(struct finding *f, char *text)
{
    for (char *next; f->frames < FINDING_FRAMES && (next = cut(text, IW_FRAME_END)); text = next) {
        char *address = cut(text, IW_FRAME_FIELD), *name = cut(address, IW_FRAME_FIELD);
        if (!name || !cut(name, IW_FRAME_FIELD))
            return;
        f->frame[f->frames++] = (struct symbol){.path = strdup(text),
                                                .address = strtoul(address, NULL, 16),
                                                .function = *name ? strdup(name) : NULL};
    }
}

static bool take_record(struct finding *f, char *line)
{
    char *process = cut(line, '\t'), *pid = cut(process, '\t'), *object = cut(pid, '\t'),
         *sentence = cut(object, '\t'), *frames = cut(sentence, '\t');
    *f = (struct finding){.kind = iw_finding_find(line), .count = 1};
    if (!frames || f->kind == IW_FINDINGS)
        return false;
    f->process = strdup(process);
    f->pid = atoi(pid);
    f->object = strdup(object);
    f->sentence = strdup(sentence);
    take_frames(f, frames);
    return f->process && f->object && f->sentence;
}

static bool same_place(const struct finding *a, const struct finding *b)
{
    if (a->kind != b->kind || a->frames != b->frames || strcmp(a->process, b->process) != 0)
        return false;
    for (size_t i = 0; i < a->frames; i++)
        if (a->frame[i].address != b->frame[i].address ||
            strcmp(a->frame[i].path, b->frame[i].path) != 0)
            return false;
    return true;
}

static void release(struct finding *f)
{
    for (size_t i = 0; i < f->frames; i++)
        symbol_drop(&f->frame[i]);
    free(f->process);
    free(f->object);
    free(f->sentence);
}

static bool add(struct findings *all, struct finding *f)
{
    for (size_t i = 0; i < all->n; i++)
        if (same_place(&all->list[i], f)) {
            all->list[i].count++;
            release(f);
            return true;
        }
    struct finding *more = realloc(all->list, (all->n + 1) * sizeof(*more));
    if (!more)
        return false;
    all->list = more;
    all->list[all->n++] = *f;
    return true;
}

/** Has a frame for each function, inlined or not, down to main(): what is below tells nobody
 * anything.
 */
static void unfold(struct finding *f)
{
    struct symbol all[FINDING_FRAMES];
    size_t n = 0;
    bool ended = false;
    for (size_t k = 0; k < f->frames; k++) {
        struct symbol *outer;
        for (struct symbol s = f->frame[k];; s = *outer, free(outer)) {
            outer = s.outer;
            bool kept = !ended && n < FINDING_FRAMES;
            ended |= kept && s.function && !strcmp(s.function, "main");
            if (kept)
                all[n++] = s;
            else
                symbol_drop(&s);
            if (!outer)
                break;
        }
    }
    memcpy(f->frame, all, n * sizeof(all[0]));
    f->frames = n;
}

static void name_frames(struct findings *all)
{
    size_t n = 0;
    struct symbol **every = calloc(all->n * FINDING_FRAMES + 1, sizeof(struct symbol *));
    for (size_t i = 0; every && i < all->n; i++)
        for (size_t k = 0; k < all->list[i].frames; k++)
            every[n++] = &all->list[i].frame[k];
    if (every)
        symbols_find(every, n);
    free(every);
    for (size_t i = 0; i < all->n; i++)
        unfold(&all->list[i]);
}

static void count(struct findings *all)
{
    memset(all->level, 0, sizeof(all->level));
    for (size_t i = 0; i < all->n; i++)
        all->level[iw_finding_info(all->list[i].kind)->level]++;
}

/* Errors first. */
static int by_level(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    int lx = (int)iw_finding_info(x->kind)->level, ly = (int)iw_finding_info(y->kind)->level;
    return lx != ly ? ly - lx : (int)x->kind - (int)y->kind;
}

const char *findings_read(struct findings *all, const char *path)
{
    char *line = NULL;
    size_t size = 0;
    *all = (struct findings){0};
    FILE *f = fopen(path, "re");
    if (!f)
        return strerror(errno);
    bool whole = true;
    while (getline(&line, &size, f) > 0) {
        struct finding next;
        if (take_record(&next, line))
            whole &= add(all, &next);
        else
            release(&next);
    }
    free(line);
    fclose(f);
    name_frames(all);
    if (all->n)
        qsort(all->list, all->n, sizeof(*all->list), by_level);
    count(all);
    return whole ? NULL : strerror(ENOMEM);
}

void findings_free(struct findings *all)
{
    for (size_t i = 0; i < all->n; i++)
        release(&all->list[i]);
    free(all->list);
    *all = (struct findings){0};
}

/* ---- suppressions ---- */

static bool matches(const char *pattern, const char *text)
{
    return text && fnmatch(pattern, text, 0) == 0;
}

static bool is_met(const char *pattern, const struct finding *f)
{
    bool met = matches(pattern, f->process);
    for (size_t i = 0; i < f->frames; i++)
        met |= matches(pattern, f->frame[i].function) || matches(pattern, f->frame[i].source) ||
               matches(pattern, f->frame[i].path);
    return met;
}

static bool covers(const char *rule, const struct finding *f)
{
    char copy[1024], *rest;
    snprintf(copy, sizeof(copy), "%s", rule);
    const char *name = strtok_r(copy, " \t\n", &rest);
    bool met = matches(name, iw_finding_info(f->kind)->name);
    for (const char *word; met && (word = strtok_r(NULL, " \t\n", &rest));)
        met = is_met(word, f);
    return met;
}

static void apply(struct findings *all, const char *rule)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (covers(rule, &all->list[i])) {
            all->suppressed++;
            release(&all->list[i]);
        } else {
            all->list[kept++] = all->list[i];
        }
    }
    all->n = kept;
}

const char *findings_suppress(struct findings *all, const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "re");
    if (!f)
        return strerror(errno);
    while (fgets(line, sizeof(line), f)) {
        size_t blank = strspn(line, " \t\n");
        if (line[blank] && line[blank] != '#')
            apply(all, line + blank);
    }
    fclose(f);
    count(all);
    return NULL;
}

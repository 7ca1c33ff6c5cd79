/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/report.h"

#include "tools/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *level_of(const struct finding *f)
{
    return iw_finding_level(iw_finding_info(f->kind)->level);
}

/** The caller frees it. */
static char *words_of(char **argv)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (; f && *argv; argv++)
        fprintf(f, "%s%s", *argv, argv[1] ? " " : "");
    if (f)
        fclose(f);
    return text;
}

/* ---- text ---- */

static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_frame(FILE *f, const struct symbol *s)
{
    fprintf(f, "    at %s", s->function ? s->function : "?");
    if (s->source)
        fprintf(f, " (%s:%u)\n", s->source, s->line);
    else
        fprintf(f, " (%s+0x%lx)\n", base(s->path), s->address);
}

static void plural(FILE *f, unsigned n, const char *what)
{
    fprintf(f, ", %u %s%s", n, what, n == 1 ? "" : "s");
}

static void report_text(FILE *f, const struct findings *all, char **argv, int status)
{
    (void)argv;
    for (size_t i = 0; i < all->n; i++) {
        const struct finding *x = &all->list[i];
        const struct iw_finding_info *info = iw_finding_info(x->kind);
        fprintf(f, "anywarp: %s: %s, %s %d%s%s\n", level_of(x), info->name, x->process, x->pid,
                *x->object ? ", " : "", x->object);
        text_wrap(f, 4, "", x->sentence);
        if (x->count > 1)
            fprintf(f, "    and %u more from here\n", x->count - 1);
        for (size_t k = 0; k < x->frames; k++)
            print_frame(f, &x->frame[k]);
        text_wrap(f, 4, "", info->remedy);
        fputc('\n', f);
    }
    fprintf(f, "anywarp: check: exit status %d", status);
    plural(f, all->level[IW_FINDING_ERROR], "error");
    plural(f, all->level[IW_FINDING_WARNING], "warning");
    plural(f, all->level[IW_FINDING_NOTE], "note");
    if (all->suppressed)
        fprintf(f, ", %u suppressed", all->suppressed);
    fputc('\n', f);
    if (all->n)
        fprintf(f, "anywarp: with code: anywarp check --explain %s\n",
                iw_finding_info(all->list[0].kind)->name);
}

/* ---- JSON ---- */

static void json_frames(FILE *f, const struct finding *x)
{
    fputs("\"frames\": [", f);
    for (size_t k = 0; k < x->frames; k++) {
        const struct symbol *s = &x->frame[k];
        fputs(k ? ", {" : "{", f);
        json_member(f, "function", s->function);
        json_member(f, "source", s->source);
        fprintf(f, "\"line\": %u, ", s->line);
        json_member(f, "file", s->path);
        fprintf(f, "\"address\": %lu}", s->address);
    }
    fputc(']', f);
}

static void report_json(FILE *f, const struct findings *all, char **argv, int status)
{
    char *command = words_of(argv);
    fputs("{", f);
    json_member(f, "version", PACKAGE_VERSION);
    json_member(f, "command", command);
    fprintf(f, "\"status\": %d, \"errors\": %u, \"warnings\": %u, \"notes\": %u, ", status,
            all->level[IW_FINDING_ERROR], all->level[IW_FINDING_WARNING],
            all->level[IW_FINDING_NOTE]);
    fprintf(f, "\"suppressed\": %u, \"findings\": [", all->suppressed);
    for (size_t i = 0; i < all->n; i++) {
        const struct finding *x = &all->list[i];
        fputs(i ? ",\n  {" : "\n  {", f);
        json_member(f, "name", iw_finding_info(x->kind)->name);
        json_member(f, "level", level_of(x));
        json_member(f, "program", x->process);
        fprintf(f, "\"pid\": %d, \"count\": %u, ", x->pid, x->count);
        json_member(f, "object", x->object);
        json_member(f, "sentence", x->sentence);
        json_member(f, "remedy", iw_finding_info(x->kind)->remedy);
        json_frames(f, x);
        fputc('}', f);
    }
    fputs("\n]}\n", f);
    free(command);
}

/* ---- JUnit ---- */

static void xml(FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '<')
            fputs("&lt;", f);
        else if (*s == '&')
            fputs("&amp;", f);
        else if (*s == '"')
            fputs("&quot;", f);
        else
            fputc((unsigned char)*s < ' ' ? '?' : *s, f);
    }
}

static void xml_finding(FILE *f, const struct finding *x)
{
    bool failed = iw_finding_info(x->kind)->level == IW_FINDING_ERROR;
    fprintf(f, failed ? "    <failure message=\"" : "    <system-out>");
    xml(f, x->sentence);
    fputs(failed ? "\">" : "\n", f);
    xml(f, x->object);
    fputc('\n', f);
    for (size_t k = 0; k < x->frames; k++) {
        const struct symbol *s = &x->frame[k];
        fputs("at ", f);
        xml(f, s->function ? s->function : "?");
        fputs(" (", f);
        xml(f, s->source ? s->source : s->path);
        if (s->source)
            fprintf(f, ":%u)\n", s->line);
        else
            fprintf(f, "+0x%lx)\n", s->address);
    }
    xml(f, iw_finding_info(x->kind)->remedy);
    fputs(failed ? "</failure>\n" : "</system-out>\n", f);
}

/** A test case for each kind of finding: it fails if there is an error of that kind. */
static void report_junit(FILE *f, const struct findings *all, char **argv, int status)
{
    char *command = words_of(argv);
    unsigned failures = 0;
    for (size_t i = 0; i < all->n; i++)
        failures += iw_finding_info(all->list[i].kind)->level == IW_FINDING_ERROR &&
                    (i == 0 || all->list[i].kind != all->list[i - 1].kind);
    fprintf(f,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"anywarp check\" tests=\"%d\" failures=\"%u\">\n"
            "  <properties><property name=\"command\" value=\"",
            (int)IW_FINDINGS, failures);
    xml(f, command ? command : "");
    fprintf(f, "\"/><property name=\"status\" value=\"%d\"/></properties>\n", status);
    for (enum iw_finding kind = 0; kind < IW_FINDINGS; kind++) {
        fprintf(f, "  <testcase classname=\"anywarp.%s\" name=\"%s\">\n",
                iw_finding_level(iw_finding_info(kind)->level), iw_finding_info(kind)->name);
        for (size_t i = 0; i < all->n; i++)
            if (all->list[i].kind == kind)
                xml_finding(f, &all->list[i]);
        fputs("  </testcase>\n", f);
    }
    fputs("</testsuite>\n", f);
    free(command);
}

/* ---- SARIF 2.1.0 ---- */

static void sarif_rules(FILE *f)
{
    fputs("\"rules\": [", f);
    for (enum iw_finding kind = 0; kind < IW_FINDINGS; kind++) {
        const struct iw_finding_info *info = iw_finding_info(kind);
        fputs(kind ? ",\n    {" : "\n    {", f);
        json_member(f, "id", info->name);
        fputs("\"shortDescription\": {\"text\": ", f);
        json_string(f, info->meaning);
        fputs("}, \"help\": {\"text\": ", f);
        json_string(f, info->remedy);
        fprintf(f, "}, \"defaultConfiguration\": {\"level\": \"%s\"}}",
                iw_finding_level(info->level));
    }
    fputs("]", f);
}

static void sarif_location(FILE *f, const struct symbol *s)
{
    fputs("{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ", f);
    json_string(f, s->source ? s->source : s->path);
    fputc('}', f);
    if (s->source)
        fprintf(f, ", \"region\": {\"startLine\": %u}", s->line);
    fputs("}, \"logicalLocations\": [{\"name\": ", f);
    json_string(f, s->function ? s->function : "?");
    fputs("}]}", f);
}

/** The first frame whose source is known. */
static const struct symbol *place_of(const struct finding *x)
{
    for (size_t k = 0; k < x->frames; k++)
        if (x->frame[k].source)
            return &x->frame[k];
    return x->frames ? &x->frame[0] : NULL;
}

static void sarif_result(FILE *f, const struct finding *x)
{
    const struct symbol *place = place_of(x);
    fputc('{', f);
    json_member(f, "ruleId", iw_finding_info(x->kind)->name);
    json_member(f, "level", level_of(x));
    fputs("\"message\": {\"text\": ", f);
    json_string(f, x->sentence);
    fputs("}, \"locations\": [", f);
    if (place)
        sarif_location(f, place);
    fputs("], \"stacks\": [{\"frames\": [", f);
    for (size_t k = 0; k < x->frames; k++) {
        fputs(k ? ", {\"location\": " : "{\"location\": ", f);
        sarif_location(f, &x->frame[k]);
        fputc('}', f);
    }
    fputs("]}]}", f);
}

static void report_sarif(FILE *f, const struct findings *all, char **argv, int status)
{
    char *command = words_of(argv);
    fputs("{\"version\": \"2.1.0\", \"$schema\": "
          "\"https://json.schemastore.org/sarif-2.1.0.json\",\n"
          " \"runs\": [{\"tool\": {\"driver\": {\"name\": \"anywarp check\", \"version\": ",
          f);
    json_string(f, PACKAGE_VERSION);
    fputs(", ", f);
    sarif_rules(f);
    fputs("}},\n  \"invocations\": [{\"executionSuccessful\": true, \"commandLine\": ", f);
    json_string(f, command);
    fprintf(f, ", \"exitCode\": %d}],\n  \"results\": [", status);
    for (size_t i = 0; i < all->n; i++) {
        fputs(i ? ",\n    " : "\n    ", f);
        sarif_result(f, &all->list[i]);
    }
    fputs("]}]}\n", f);
    free(command);
}

report *report_find(const char *format)
{
    static const struct {
        const char *name;
        report *print;
    } formats[] = {
        {"text", report_text},
        {"json", report_json},
        {"junit", report_junit},
        {"sarif", report_sarif},
    };
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (!strcmp(formats[i].name, format))
            return formats[i].print;
    return NULL;
}

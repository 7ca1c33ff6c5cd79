/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/frame.h"

#include "tools/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/** As "f at f.c:3, in g at g.c:17" where f is inlined, without what headers have inlined. */
static void print(char *text, size_t size, const struct symbol *s)
{
    size_t at = 0;
    for (; s; s = s->outer) {
        if (!s->function || !strncmp(s->function, "__", 2) || at >= size)
            continue;
        at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", in " : "", s->function);
        if (at < size && s->source)
            at += (size_t)snprintf(text + at, size - at, " at %s:%u", base_of(s->source), s->line);
        else if (at < size)
            at += (size_t)snprintf(text + at, size - at, " in %s", base_of(s->path));
    }
}

static void drop(struct symbol *s)
{
    while (s) {
        struct symbol *outer = s->outer;
        symbol_drop(s);
        free(s);
        s = outer;
    }
}

void frame_name(char *text, size_t size, const char *frame)
{
    const char *plus = strrchr(frame, '+');
    struct symbol *s = calloc(1, sizeof(*s));
    snprintf(text, size, "%s", base_of(frame));
    if (s && plus && (s->path = strndup(frame, (size_t)(plus - frame)))) {
        s->address = strtoul(plus + 1, NULL, 16) - 1;
        symbols_find(&s, 1);
        print(text, size, s);
    }
    drop(s);
}

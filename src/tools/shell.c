/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/shell.h"

#include <string.h>

static void print_word(FILE *f, const char *s)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=+,@%";
    if (*s && !s[strspn(s, plain)]) {
        fputs(s, f);
        return;
    }
    fputc('\'', f);
    for (; *s; s++)
        if (*s == '\'')
            fputs("'\\''", f);
        else
            fputc(*s, f);
    fputc('\'', f);
}

void shell_words(FILE *f, char *const *word)
{
    for (; *word; word++) {
        fputc(' ', f);
        print_word(f, *word);
    }
}

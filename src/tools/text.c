/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/text.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define COLUMNS 79

static void put_word(FILE *f, const char *word, size_t len)
{
    for (; len > 0; word++, len--)
        fputc(iscntrl((unsigned char)*word) ? '?' : *word, f);
}

void text_wrap(FILE *f, int indent, const char *label, const char *words)
{
    int column = fprintf(f, "%-*s", indent, label), start = column;
    for (size_t len; *words; words += len + strspn(words + len, " ")) {
        len = strcspn(words, " ");
        if (column > start && column + 1 + (int)len > COLUMNS)
            column = fprintf(f, "\n%*s", indent, "") - 1;
        else if (column > start)
            column += fprintf(f, " ");
        start = indent;
        put_word(f, words, len);
        column += (int)len;
    }
    fputc('\n', f);
}

/** Bytes of the UTF-8 character at @p s, or 0: none is there. */
static size_t utf8_length(const unsigned char *s)
{
    size_t len = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if (len > 2) /* longer than it had to be, a surrogate, or above U+10FFFF */
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
            (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
            return 0;
    return len;
}

void json_string(FILE *f, const char *s)
{
    if (!s) {
        fputs("null", f);
        return;
    }
    fputc('"', f);
    for (size_t len; *s; s += len ? len : 1) {
        len = utf8_length((const unsigned char *)s);
        if (!len)
            fputs("\\ufffd", f);
        else if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < ' ' || *s == 0x7f)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            fwrite(s, 1, len, f);
    }
    fputc('"', f);
}

void json_member(FILE *f, const char *key, const char *text)
{
    fprintf(f, "\"%s\": ", key);
    json_string(f, text);
    fputs(", ", f);
}

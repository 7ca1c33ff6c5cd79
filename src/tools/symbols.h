/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and lines of addresses in files, as addr2line tells them. */
#ifndef ANYWARP_TOOLS_SYMBOLS_H
#define ANYWARP_TOOLS_SYMBOLS_H

#include <stddef.h>

struct symbol {
    char *path;            /* the file */
    unsigned long address; /* in it, inside the call */
    char *function;        /* [in] what is known of it, or NULL; [out] better, or that */
    char *source;          /* [out] NULL: unknown */
    unsigned line;
    struct symbol *outer; /* [out] the function that this one was inlined into, to be freed; NULL */
};

/**
 * Fills in what is known of all @p n, with as few runs of addr2line as there are files; nothing
 * where that is not installed.
 */
void symbols_find(struct symbol **symbols, size_t n);

/** Frees its strings, not itself, nor the outer one. */
void symbol_drop(struct symbol *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for people and for programs. */
#ifndef ANYWARP_TOOLS_TEXT_H
#define ANYWARP_TOOLS_TEXT_H

#include <stdio.h>

/**
 * Prints words in lines of at most 79 columns, each after @p indent blanks, in the first of which
 * stands the label; ends the last line. Control characters become question marks.
 */
void text_wrap(FILE *f, int indent, const char *label, const char *words);

/** Prints a JSON string, null for NULL; what is not UTF-8 becomes U+FFFD. */
void json_string(FILE *f, const char *s);

/** Prints a member of an object and a comma: for all but the last. */
void json_member(FILE *f, const char *key, const char *text);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a file has the name of a library of ours in it: it may load it while it runs. */
#ifndef ANYWARP_TOOLS_MENTION_H
#define ANYWARP_TOOLS_MENTION_H

enum mention {
    MENTION_NONE,
    MENTION_NAME,
    MENTION_PATH, /* with a folder, which no search path can redirect */
};

/** Reads all of the file. */
enum mention mention_in(const char *path);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What main() does with the files that a module has in /proc. */
#ifndef KVERBS_PROC_H
#define KVERBS_PROC_H

/** Copies a file to stdout, or writes one line of text to it. @return 0 or a negative errno */
int kv_proc_read(const char *path);
int kv_proc_write(const char *path, const char *text);

#endif

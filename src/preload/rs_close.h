/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that come and go. */
#ifndef ANYWARP_PRELOAD_RS_CLOSE_H
#define ANYWARP_PRELOAD_RS_CLOSE_H

/**
 * A call has returned @p fd, or -1 and errno, which is kept: the number stands for nothing any
 * more, if it was closed where nobody saw it, as by a system call of the program's own.
 * @return fd
 */
int pre_fresh(int fd);
/** @p to, if it is no error, was made a duplicate of @p from. @return to */
int pre_duplicated(int from, int to);

#endif

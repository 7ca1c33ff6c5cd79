/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of the descriptors that programs do not see: above 1023 where that is possible, as
 * programs that use select() need those below. The soft limit belongs to the whole program, whose
 * loops may go through all numbers below it: it is raised in steps, when a descriptor would be
 * refused without that.
 */
#ifndef ANYWARP_ENV_FD_H
#define ANYWARP_ENV_FD_H

#include <stdbool.h>

/** @return the new number of the new descriptor @p fd, or @p fd where there is none above 1023 */
int iw_fd_high(int fd);

/** A socket. @return as iw_fd_high(), or a negative errno */
int iw_fd_socket(int domain, int type, int protocol);

/** Raises the soft limit by a step. @return false if it is the hard one */
bool iw_fd_more(void);

#endif

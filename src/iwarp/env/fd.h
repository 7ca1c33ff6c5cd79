/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of the descriptors that programs do not see: above 1023 where that is possible, as
 * programs that use select() need those below. The soft limit belongs to the whole program, whose
 * loops may go through all numbers below it: it is raised in steps, when a descriptor would be
 * refused without that. Never those of standard input, output and error, which a program may have
 * closed, unless there is no other.
 */
#ifndef ANYWARP_ENV_FD_H
#define ANYWARP_ENV_FD_H

#include <stdbool.h>
#include <sys/types.h>

/** @return the new number of the new descriptor @p fd; where there is none above 1023 @p fd, or
 * another above 2 */
int iw_fd_high(int fd);

/** A socket. @return as iw_fd_high(), or a negative errno */
int iw_fd_socket(int domain, int type, int protocol);

/**
 * For a child of fork(), and before a number is used that has not been for long: whether @p fd is
 * still an eventfd, a timerfd or an epoll set. A program that has closed all that it does not know
 * may have a file of its own there.
 */
bool iw_fd_is_anonymous(int fd);

/** The same of a socket. */
bool iw_fd_is_socket(int fd);

/** Which file it is, as far as the kernel tells; 0: it is closed. All anonymous ones are the same.
 */
ino_t iw_fd_file(int fd);

/** Closes what is still of that kind. */
void iw_fd_leave_anonymous(int fd);
void iw_fd_leave_socket(int fd);

/** Raises the soft limit by a step. @return false if it is the hard one */
bool iw_fd_more(void);

#endif

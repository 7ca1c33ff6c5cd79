/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoll: a set of the kernel's, and beside it the rsockets that the program added to it.
 */
#ifndef ANYWARP_PRELOAD_RS_EPOLL_H
#define ANYWARP_PRELOAD_RS_EPOLL_H

#include "preload/rs_numbers.h"

#include <stdint.h>

/** A number has become plain TCP: the kernel looks after it in all sets. */
void pre_epoll_plain(int fd);
/** A number that stands for @p s is closed: sets look after another one, if there is. */
void pre_epoll_forget(int fd, const struct pre_socket *s);
/** A number is closed: it may be that of a set. */
void pre_epoll_close(int epfd);
/** A number is new: it may be that of a set whose end nobody saw, and whose eventfd may be gone. */
void pre_epoll_fresh(int epfd);
/**
 * A call has taken something of what EPOLLET told of @p events, or found nothing: what is there
 * then, or comes, is told again. So what was not taken at once may be told twice.
 */
void pre_epoll_used_up(int fd, uint32_t events);

#endif

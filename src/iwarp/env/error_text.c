/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/error_text.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

/* What a TCP socket, its epoll set and the memory for both come to. glibc names them since 2.32. */
#define ROW(error, text)                                                                           \
    {                                                                                              \
        error, #error ", " text                                                                    \
    }

static const struct {
    int error;
    const char *text;
} rows[] = {
    ROW(ECONNRESET, "Connection reset by peer"),
    ROW(EPIPE, "Broken pipe"),
    ROW(ETIMEDOUT, "Connection timed out"),
    ROW(ECONNABORTED, "Software caused connection abort"),
    ROW(ECONNREFUSED, "Connection refused"),
    ROW(EHOSTUNREACH, "No route to host"),
    ROW(EHOSTDOWN, "Host is down"),
    ROW(ENETUNREACH, "Network is unreachable"),
    ROW(ENETDOWN, "Network is down"),
    ROW(ENETRESET, "Network dropped connection on reset"),
    ROW(EADDRNOTAVAIL, "Cannot assign requested address"),
    ROW(ENOTCONN, "Transport endpoint is not connected"),
    ROW(ENOPROTOOPT, "Protocol not available"),
    ROW(EPROTO, "Protocol error"),
    ROW(EMSGSIZE, "Message too long"),
    ROW(ENOBUFS, "No buffer space available"),
    ROW(ENOMEM, "Cannot allocate memory"),
    ROW(ENOSPC, "No space left on device"),
    ROW(EMFILE, "Too many open files"),
    ROW(ENFILE, "Too many open files in system"),
    ROW(EACCES, "Permission denied"),
    ROW(EPERM, "Operation not permitted"),
    ROW(EBADF, "Bad file descriptor"),
    ROW(EFAULT, "Bad address"),
    ROW(EINVAL, "Invalid argument"),
    ROW(EIO, "Input/output error"),
};

void iw_error_text(int error, char text[IW_ERROR_TEXT_MAX])
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].error == error) {
            snprintf(text, IW_ERROR_TEXT_MAX, "%s", rows[i].text);
            return;
        }
    }
    snprintf(text, IW_ERROR_TEXT_MAX, "errno %d", error);
}

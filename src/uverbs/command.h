/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs commands: one table, and the checks that all of them have in common. */
#ifndef ANYWARP_UVERBS_COMMAND_H
#define ANYWARP_UVERBS_COMMAND_H

#include "uverbs/context.h"

/** One command that is being executed. */
struct uv_call {
    struct uv_file *file;
    struct uv_context *context;
    const void
        *in; /* the command's struct, behind the header; aligned, at least as long as it is */
    const uint8_t *rest; /* what follows the struct */
    size_t in_len;       /* of the struct and the rest */
    void *resp;          /* zeros, as long as any response; NULL on the data path */
    uint64_t out;        /* where the caller wants the response */
    size_t out_len;      /* what is there for it */
};

enum uv_class {
    UV_MAKES = 1,    /* makes or destroys objects */
    UV_DATA = 2,     /* on the data path */
    UV_ANSWERS = 4,  /* writes the response itself */
    UV_MAY_SKIP = 8, /* a caller may ask for no response */
    UV_FIRST = 16,   /* comes before all others */
};

struct uv_command {
    const char *name;
    uint16_t in;        /* bytes of its struct */
    uint16_t out_linux; /* bytes that a response must have room for */
    uint16_t out_full;  /* bytes that are written where there is room */
    uint16_t class;
    int (*execute)(struct uv_call *call); /* @return 0 or an errno */
};

/** @return the row of a command's number, or NULL */
const struct uv_command *uv_command_row(uint32_t number);

/**
 * Executes a command.
 *
 * @param bytes its struct and what follows, readable
 * @param out where the caller wants the response
 * @return 0 or an errno
 */
int uv_execute(struct uv_file *f, const struct uv_command *row, const uint8_t *bytes, size_t len,
               uint64_t out, size_t out_len);

/** Executes what was written. @return len, or a negative errno */
ssize_t uv_command(struct uv_file *f, const uint8_t *command, size_t len);

#endif

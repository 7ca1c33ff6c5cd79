/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_cm commands: one table, and the file that takes them. */
#ifndef ANYWARP_UVERBS_UCM_H
#define ANYWARP_UVERBS_UCM_H

#include "uverbs/ucm_id.h"

/** One command that is being executed. */
struct ucm_call {
    struct uv_file *file;
    const void *in; /* the command's struct, zeros where the caller's is shorter */
    void *resp;     /* zeros, as long as any response */
    size_t out_len;
};

struct ucm_command {
    const char *name;
    uint16_t in;          /* bytes that the caller's struct must have */
    uint16_t out_min;     /* bytes that a response must have room for; 0: there is none */
    uint16_t out;         /* bytes that are written where there is room */
    uint16_t response_at; /* where the struct has the response's address */
    int (*execute)(struct ucm_call *call); /* @return 0 or an errno */
};

/** @return the row of a command's number, or NULL */
const struct ucm_command *ucm_command_row(uint32_t number);

/** A file that takes rdma_cm commands. @return its descriptor, or a negative errno */
int ucm_open(void);

#endif

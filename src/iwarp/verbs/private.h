/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is behind the names that libibverbs.so.1 has for providers, at all version nodes that ever
 * were. Only the assembler file that nodes.sh makes calls these; most take arguments of which they
 * look at none.
 */
#ifndef ANYWARP_VERBS_PRIVATE_H
#define ANYWARP_VERBS_PRIVATE_H

#include <infiniband/verbs.h>
#include <stdint.h>

/** Writes to our log what a provider has to say; levels are numbered as ours. */
void private_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * The type of a GID as sysfs tells it, 1 for RoCE v2, else 0; for ibv_devinfo, too.
 * @return 0, or -1 and EINVAL
 */
int private_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
                           unsigned *type);

/** "rdma-write" and so on, "unknown" for what is no opcode of verbs. (strings.c) */
const char *private_wr_opcode_str(enum ibv_wr_opcode opcode);

/** The number of attributes of a command, if its buffers are not linked. */
unsigned private_num_attrs(unsigned num_attrs, void *link);

/** Makes nothing. @return NULL and EOPNOTSUPP */
void *private_null(void);

/** @return -1 and EOPNOTSUPP */
int private_minus_one(void);

/** A command to a device of the kernel. @return EOPNOTSUPP */
int private_refuse(void);

/** A registration, or the end of what never was. */
void private_nothing(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of ibv_devinfo. Names and order of the fields are those of rdma-core's program. */
#ifndef ANYWARP_TOOLS_DEVINFO_H
#define ANYWARP_TOOLS_DEVINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/* A number of verbs and its name; a NULL text ends a table. */
struct devinfo_name {
    uint64_t value;
    const char *text;
};

/** Prints a field: its name after @p level tabs, and the value in the column of that level. */
void devinfo_field(int level, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** The name in the table, or "invalid value". */
const char *devinfo_text(int value, const struct devinfo_name *names);

/** Prints a field whose value has a name, as "NAME (number)". */
void devinfo_named(int level, const char *name, int value, const struct devinfo_name *names);

/** Prints the name of each bit that is set, one a line. */
void devinfo_flags(uint64_t flags, const struct devinfo_name *names);

/** @return what ibv_query_device_ex() said: 0 or an error */
int devinfo_device(struct ibv_context *ctx, bool verbose, unsigned *ports);

/** @return what ibv_query_port() said: 0 or an error */
int devinfo_port(struct ibv_context *ctx, uint8_t port, bool verbose);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* anywarp's two libraries, loaded into this process as programs load them. */
#ifndef ANYWARP_TOOLS_PAIR_H
#define ANYWARP_TOOLS_PAIR_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#undef ibv_query_port

/* Functions of libibverbs, by their names without "ibv_". */
#define PAIR_CALLS(X)                                                                              \
    X(close_device)                                                                                \
    X(free_device_list)                                                                            \
    X(get_device_guid)                                                                             \
    X(get_device_list)                                                                             \
    X(get_device_name)                                                                             \
    X(get_sysfs_path)                                                                              \
    X(open_device)                                                                                 \
    X(port_state_str)                                                                              \
    X(query_device)                                                                                \
    X(query_gid)                                                                                   \
    X(query_port)

const char *ibv_get_sysfs_path(void);

struct pair {
#define MEMBER(name) __typeof__(&ibv_##name) name;
    PAIR_CALLS(MEMBER)
#undef MEMBER
};

/** @return NULL, or what the loader says against it; valid until the next call of dlerror() */
const char *pair_load(struct pair *p);

#endif

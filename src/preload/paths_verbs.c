/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs with which the folder is described, in a library that is preloaded into every program:
 * the first call finds a libibverbs, the one that the program has, or the one beside this library.
 * If the program's is not anywarp's, there is no device.
 */
#include "preload/next.h"

#include <infiniband/verbs.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libibverbs.so.1"

/** The file of that name in the folder that this library is in. */
static void *load_beside(void)
{
    static const char here;
    Dl_info info;
    char path[PATH_MAX];
    const char *slash = dladdr(&here, &info) ? strrchr(info.dli_fname, '/') : NULL;
    if (!slash || snprintf(path, sizeof path, "%.*s/" LIBRARY, (int)(slash - info.dli_fname),
                           info.dli_fname) >= (int)sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *find(const char *name)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        library = load_beside();
    return library && dlvsym(library, "iw_cm_listen", "ANYWARP_PRIVATE_1") ? dlsym(library, name)
                                                                           : NULL;
}

/** Calls the function of that name; @p otherwise: there is none. */
#define CALL(name, otherwise, ...)                                                                 \
    ({                                                                                             \
        static __typeof__(&(name)) found_;                                                         \
        __typeof__(&(name)) f_ = __atomic_load_n(&found_, __ATOMIC_RELAXED);                       \
        if (!f_) {                                                                                 \
            f_ = (__typeof__(&(name)))find(#name);                                                 \
            __atomic_store_n(&found_, f_, __ATOMIC_RELAXED);                                       \
        }                                                                                          \
        f_ ? f_(__VA_ARGS__) : (otherwise);                                                        \
    })

struct ibv_device **ibv_get_device_list(int *n)
{
    return CALL(ibv_get_device_list, NULL, n);
}

/* The others get what this one gave, and so are there. */
void ibv_free_device_list(struct ibv_device **list)
{
    void (*f)(struct ibv_device **) = list ? (void (*)(struct ibv_device **))find(__func__) : NULL;
    if (f)
        f(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return CALL(ibv_get_device_name, NULL, device);
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return CALL(ibv_get_device_guid, 0, device);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return CALL(ibv_open_device, NULL, device);
}

int ibv_close_device(struct ibv_context *context)
{
    return CALL(ibv_close_device, -1, context);
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return CALL(ibv_query_port, -1, context, port, attr);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    return CALL(_ibv_query_gid_ex, -1, context, port, index, entry, flags, size);
}

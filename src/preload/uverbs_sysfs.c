/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/uverbs_sysfs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The provider is chosen by this adapter's number: with ABI 1, all that it does are commands. */
#define MODALIAS "pci:v00001FC1d00000010sv00000000sd00000000bc00sc00i00"

/* All files in one string, "path\n" and contents, each with its 0, so that they can be hashed. */
struct text {
    char *bytes;
    size_t len;
    bool failed;
};

static void add(struct text *t, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(struct text *t, const char *path, const char *format, ...)
{
    char contents[256];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(contents, sizeof contents - 1, format, ap);
    va_end(ap);
    size_t path_len = strlen(path) + 1, len = (size_t)n + 2;
    char *bytes = realloc(t->bytes, t->len + path_len + len);
    if (!bytes || n < 0 || len > sizeof contents) {
        t->failed = true;
        return;
    }
    memcpy(bytes + t->len, path, path_len);
    memcpy(bytes + t->len + path_len, contents, len - 2);
    memcpy(bytes + t->len + path_len + len - 2, "\n", 2);
    t->bytes = bytes;
    t->len += path_len + len;
}

static void add_words(struct text *t, const char *path, const uint8_t *bytes, int words)
{
    char line[64];
    for (int i = 0, n = 0; i < words; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s%02x%02x", i ? ":" : "", bytes[2 * i],
                      bytes[2 * i + 1]);
    add(t, path, "%s", line);
}

static void add_port(struct text *t, struct ibv_context *context, const char *ib)
{
    struct ibv_port_attr port;
    if (ibv_query_port(context, 1, &port) != 0) {
        t->failed = true;
        return;
    }
    char path[256];
    for (int i = 0; i < port.gid_tbl_len; i++) {
        union ibv_gid gid = {{0}};
        ibv_query_gid(context, 1, i, &gid);
        snprintf(path, sizeof path, "%s/ports/1/gids/%d", ib, i);
        add_words(t, path, gid.raw, 8);
        snprintf(path, sizeof path, "%s/ports/1/gid_attrs/types/%d", ib, i);
        add(t, path, "IB/RoCE v1");
        snprintf(path, sizeof path, "%s/ports/1/gid_attrs/ndevs/%d", ib, i);
        add(t, path, "lo");
    }
    for (int i = 0; i < port.pkey_tbl_len; i++) {
        snprintf(path, sizeof path, "%s/ports/1/pkeys/%d", ib, i);
        add(t, path, "0xffff");
    }
    snprintf(path, sizeof path, "%s/ports/1/link_layer", ib);
    add(t, path, "Ethernet");
}

static void add_device(struct text *t, struct ibv_device *device, int number)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;
    if (!context || ibv_query_device(context, &attr) != 0) {
        t->failed = true;
        return;
    }
    const char *name = ibv_get_device_name(device);
    char ib[128], path[256];
    snprintf(path, sizeof path, "class/infiniband_verbs/uverbs%d/ibdev", number);
    add(t, path, "%s", name);
    snprintf(path, sizeof path, "class/infiniband_verbs/uverbs%d/dev", number);
    add(t, path, "%d:%d", UVERBS_MAJOR, UVERBS_MINOR + number);
    snprintf(path, sizeof path, "class/infiniband_verbs/uverbs%d/abi_version", number);
    add(t, path, "1");
    snprintf(path, sizeof path, "class/infiniband_verbs/uverbs%d/device/modalias", number);
    add(t, path, "%s", MODALIAS);

    snprintf(ib, sizeof ib, "class/infiniband/%s", name);
    snprintf(path, sizeof path, "%s/node_type", ib);
    add(t, path, "%s", device->node_type == IBV_NODE_RNIC ? "4: RNIC" : "1: CA");
    uint64_t guid = ibv_get_device_guid(device);
    snprintf(path, sizeof path, "%s/node_guid", ib);
    add_words(t, path, (uint8_t *)&guid, 4);
    snprintf(path, sizeof path, "%s/sys_image_guid", ib);
    add_words(t, path, (uint8_t *)&attr.sys_image_guid, 4);
    snprintf(path, sizeof path, "%s/fw_ver", ib);
    add(t, path, "%s", attr.fw_ver);
    snprintf(path, sizeof path, "%s/node_desc", ib);
    add(t, path, "%s", name);
    snprintf(path, sizeof path, "%s/device/modalias", ib);
    add(t, path, "%s", MODALIAS);
    add_port(t, context, ib);
    ibv_close_device(context);
}

static void add_all(struct text *t)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    add(t, "class/infiniband_verbs/abi_version", "6");
    add(t, "class/misc/rdma_cm/abi_version", "4");
    for (int i = 0; list && list[i]; i++)
        add_device(t, list[i], i);
    ibv_free_device_list(list);
}

/** Makes all folders of a path below @p root. */
static int make_parents(int root, const char *path)
{
    char part[256];
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdirat(root, part, 0700) != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int write_all(const char *folder, const struct text *t)
{
    int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = root < 0 ? -1 : 0;
    for (const char *at = t->bytes; !err && at < t->bytes + t->len;) {
        const char *contents = at + strlen(at) + 1;
        size_t len = strlen(contents);
        int fd = make_parents(root, at) == 0
                     ? openat(root, at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                     : -1;
        if (fd < 0 || write(fd, contents, len) != (ssize_t)len)
            err = -1;
        if (fd >= 0)
            close(fd);
        at = contents + len + 1;
    }
    if (root >= 0)
        close(root);
    return err;
}

static uint64_t hash(const struct text *t)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < t->len; i++)
        h = (h ^ (uint8_t)t->bytes[i]) * UINT64_C(1099511628211);
    return h;
}

/** A folder of our own that nobody else can write to. */
static int make_base(char *base, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && *runtime == '/' && access(runtime, W_OK) == 0 && strlen(runtime) < size - 64)
        snprintf(base, size, "%s/anywarp", runtime);
    else
        snprintf(base, size, "/dev/shm/anywarp-%u", (unsigned)geteuid());
    if (mkdir(base, 0700) != 0 && errno != EEXIST)
        return -1;
    struct stat st;
    if (lstat(base, &st) != 0)
        return -1;
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
        return 0;
    errno = EPERM;
    return -1;
}

const char *uverbs_sysfs(void)
{
    static char folder[512];
    char base[256], fresh[400];
    struct text t = {0};
    add_all(&t);
    if (t.failed || make_base(base, sizeof base) != 0) {
        free(t.bytes);
        return NULL;
    }
    snprintf(folder, sizeof folder, "%s/sys-%016llx", base, (unsigned long long)hash(&t));
    bool there = access(folder, F_OK) == 0;
    if (!there) {
        snprintf(fresh, sizeof fresh, "%s/new-XXXXXX", base);
        /* Whoever is first to name it has made what all others would make. */
        there = mkdtemp(fresh) && write_all(fresh, &t) == 0 &&
                (rename(fresh, folder) == 0 || access(folder, F_OK) == 0);
    }
    free(t.bytes);
    return there ? folder : NULL;
}

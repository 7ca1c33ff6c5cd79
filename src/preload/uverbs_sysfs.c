/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/uverbs_sysfs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/** In groups of four digits, as Linux shows GUIDs and GIDs. */
static void print_words(char line[64], const uint8_t *bytes, int words)
{
    for (int i = 0, n = 0; i < words; i++)
        n += snprintf(line + n, 64 - (size_t)n, "%s%02x%02x", i ? ":" : "", bytes[2 * i],
                      bytes[2 * i + 1]);
}

static void add_guid(struct text *t, const char *path, uint64_t guid)
{
    char line[64];
    print_words(line, (const uint8_t *)&guid, 4);
    add(t, path, "%s", line);
}

/* Without opening it: programs that never ask for a device have no thread of the engine's. */
static void add_device(struct text *t, struct ibv_device *device, int number)
{
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
    snprintf(path, sizeof path, "%s/node_guid", ib);
    add_guid(t, path, ibv_get_device_guid(device));
    snprintf(path, sizeof path, "%s/sys_image_guid", ib);
    add_guid(t, path, ibv_get_device_guid(device));
    snprintf(path, sizeof path, "%s/fw_ver", ib);
    add(t, path, "%s", PACKAGE_VERSION);
    snprintf(path, sizeof path, "%s/node_desc", ib);
    add(t, path, "%s", name);
    snprintf(path, sizeof path, "%s/device/modalias", ib);
    add(t, path, "%s", MODALIAS);
    snprintf(path, sizeof path, "%s/ports/1/pkeys/0", ib);
    add(t, path, "0xffff");
    snprintf(path, sizeof path, "%s/ports/1/link_layer", ib);
    add(t, path, "Ethernet");
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

static char folder[512];

/* Other programs start, too: whoever sees the file finds all of it. */
static int write_file(int root, const char *path, const char *contents)
{
    char fresh[sizeof folder + 16];
    snprintf(fresh, sizeof fresh, "%s/.new-XXXXXX", folder);
    int fd = make_parents(root, path) == 0 ? mkostemp(fresh, O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    ssize_t len = (ssize_t)strlen(contents);
    bool written = write(fd, contents, (size_t)len) == len;
    close(fd);
    if (written && renameat(AT_FDCWD, fresh, root, path) == 0)
        return 0;
    unlink(fresh);
    return -1;
}

/** Those that are not there. */
static int write_all(const struct text *t)
{
    int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = root < 0 ? -1 : 0;
    for (const char *at = t->bytes; !err && at < t->bytes + t->len;) {
        const char *contents = at + strlen(at) + 1;
        if (faccessat(root, at, R_OK, 0) != 0)
            err = write_file(root, at, contents);
        at = contents + strlen(contents) + 1;
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

/** Makes it, or finds that it is one of our own that nobody else can write to. EACCES: another's.
 */
static int make_own(const char *base)
{
    struct stat st;
    if ((mkdir(base, 0700) != 0 && errno != EEXIST) || lstat(base, &st) != 0)
        return -1;
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
        return 0;
    errno = S_ISDIR(st.st_mode) && st.st_uid != geteuid() ? EACCES : EPERM;
    return -1;
}

static int make_base(char *base, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && *runtime == '/' && access(runtime, W_OK) == 0 && strlen(runtime) < size - 64) {
        snprintf(base, size, "%s/anywarp", runtime);
        if (make_own(base) == 0)
            return 0;
        if (errno != EACCES)
            return -1;
    }
    snprintf(base, size, "/dev/shm/anywarp-%u", (unsigned)geteuid());
    return make_own(base);
}

const char *uverbs_sysfs(void)
{
    char base[256] = "";
    struct text t = {0};
    add_all(&t);
    bool there = !t.failed && make_base(base, sizeof base) == 0;
    snprintf(folder, sizeof folder, "%s/sys-%016llx", base, (unsigned long long)hash(&t));
    there = there && (mkdir(folder, 0700) == 0 || errno == EEXIST) && write_all(&t) == 0;
    if (!there)
        fprintf(stderr, "anywarp: the devices cannot be described in %s: %s\n", base,
                strerror(errno));
    free(t.bytes);
    return there ? folder : NULL;
}

/* ---- Files that come and go: below a device's ports/1 ---- */

#define DEVICES "/class/infiniband/"

/** @return the entry of the GID table that a path names, and the device's and the file's name; or
 * -1 */
static int entry_of(const char *path, char device[64], char file[16])
{
    size_t len = strlen(folder);
    int index, end = 0;
    if (!len || strncmp(path, folder, len) != 0 ||
        strncmp(path + len, DEVICES, sizeof DEVICES - 1) != 0)
        return -1;
    path += len + sizeof DEVICES - 1;
    if ((sscanf(path, "%63[^/]/ports/1/%15[^/]/%3d%n", device, file, &index, &end) == 3 &&
         !strcmp(file, "gids") && !path[end]) ||
        (sscanf(path, "%63[^/]/ports/1/gid_attrs/%15[^/]/%3d%n", device, file, &index, &end) == 3 &&
         (!strcmp(file, "types") || !strcmp(file, "ndevs")) && !path[end]))
        return index;
    return -1;
}

bool uverbs_sysfs_changes(const char *path)
{
    char device[64], file[16];
    return entry_of(path, device, file) >= 0;
}

/** What the entry holds: zeros if it is empty, or gone. @return whether there is such a device */
static bool find_gid(const char *name, uint32_t index, struct ibv_gid_entry *entry)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;
    for (int i = 0; list && list[i] && !context; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name))
            context = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    if (!context)
        return false;
    if (ibv_query_gid_ex(context, 1, index, entry, 0) != 0)
        *entry = (struct ibv_gid_entry){0};
    ibv_close_device(context);
    return true;
}

int uverbs_sysfs_open(const char *path)
{
    char device[64], file[16], line[64] = "IB/RoCE v1";
    struct ibv_gid_entry entry;
    int index = entry_of(path, device, file);
    if (index < 0 || !find_gid(device, (uint32_t)index, &entry)) {
        errno = ENOENT;
        return -1;
    }
    if (!strcmp(file, "gids"))
        print_words(line, entry.gid.raw, 8);
    else if (!strcmp(file, "types") && entry.gid_type == IBV_GID_TYPE_ROCE_V2)
        strcpy(line, "RoCE v2");
    else if (!strcmp(file, "ndevs") && !if_indextoname(entry.ndev_ifindex, line))
        strcpy(line, "lo");
    int fd = memfd_create(file, MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t len = strlen(line);
    line[len++] = '\n';
    if (write(fd, line, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    errno = EIO;
    return -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/uverbs_sysfs.h"

#include "preload/sysfs_port.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The provider is chosen by this adapter's number: with ABI 1, all that it does are commands. */
#define MODALIAS "pci:v00001FC1d00000010sv00000000sd00000000bc00sc00i00"

enum { FOLDER_MAX = 512 };

/* In the folder, as in /sys and in /. */
#define IB    "class/infiniband"
#define VERBS "class/infiniband_verbs"
#define NODES "dev/infiniband"

/* All files in one string, path and contents, each with its 0, so that they can be hashed. Contents
 * that begin with a slash are where a symbolic link goes to. */
struct text {
    char *bytes;
    size_t len;
    bool failed;
};

/** A file of this name in a folder. */
static void add(struct text *t, const char *folder, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(struct text *t, const char *folder, const char *name, const char *format, ...)
{
    char path[256], contents[256];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(contents, sizeof contents - 1, format, ap);
    va_end(ap);
    int at = snprintf(path, sizeof path, "%s/%s", folder, name);
    size_t path_len = (size_t)at + 1, len = (size_t)n + 2;
    bool fits = at > 0 && path_len <= sizeof path && n >= 0 && len <= sizeof contents;
    char *bytes = fits ? realloc(t->bytes, t->len + path_len + len) : NULL;
    if (!bytes) {
        t->failed = true;
        return;
    }
    memcpy(bytes + t->len, path, path_len);
    memcpy(bytes + t->len + path_len, contents, len - 2);
    memcpy(bytes + t->len + path_len + len - 2, "\n", 2);
    t->bytes = bytes;
    t->len += path_len + len;
}

static void add_guid(struct text *t, const char *folder, const char *name, uint64_t guid)
{
    char line[64];
    sysfs_words(line, (const uint8_t *)&guid, 4);
    add(t, folder, name, "%s", line);
}

/* Without opening it: programs that never ask for a device have no thread of the engine's. */
static void add_device(struct text *t, struct ibv_device *device, int number)
{
    const char *name = ibv_get_device_name(device);
    char folder[128];
    snprintf(folder, sizeof folder, VERBS "/uverbs%d", number);
    add(t, folder, "ibdev", "%s", name);
    add(t, folder, "dev", "%d:%d", UVERBS_MAJOR, UVERBS_MINOR + number);
    add(t, folder, "abi_version", "1");

    snprintf(folder, sizeof folder, IB "/%s", name);
    add(t, folder, "node_type", "%s", device->node_type == IBV_NODE_RNIC ? "4: RNIC" : "1: CA");
    add_guid(t, folder, "node_guid", ibv_get_device_guid(device));
    add_guid(t, folder, "sys_image_guid", ibv_get_device_guid(device));
    add(t, folder, "fw_ver", "%s", PACKAGE_VERSION);
    add(t, folder, "node_desc", "%s", name);
    add(t, folder, "ports/1/pkeys/0", "0xffff");
    add(t, folder, "ports/1/link_layer", "Ethernet");
}

static void add_for_library(struct text *t, struct ibv_device *device, int number)
{
    char folder[128];
    add_device(t, device, number);
    snprintf(folder, sizeof folder, VERBS "/uverbs%d", number);
    add(t, folder, "device/modalias", MODALIAS);
    snprintf(folder, sizeof folder, IB "/%s", ibv_get_device_name(device));
    add(t, folder, "device/modalias", MODALIAS);
}

static void add_changing(struct text *t, struct ibv_context *context, const char *folder,
                         const char *name)
{
    char file[16], line[SYSFS_LINE];
    sysfs_port_line(context, file, sysfs_port_file(name, file), line);
    add(t, folder, name, "%s", line);
}

static void add_port(struct text *t, struct ibv_context *context, const char *folder)
{
    static const char *const files[] = {"ports/1/state", "ports/1/phys_state", "ports/1/rate"};
    static const char *const entries[] = {"gids", "gid_attrs/types", "gid_attrs/ndevs"};
    struct ibv_port_attr port = {0};
    char name[64];
    for (size_t i = 0; i < 3; i++)
        add_changing(t, context, folder, files[i]);
    (ibv_query_port)(context, 1, (struct _compat_ibv_port_attr *)&port);
    for (int k = 0; k < 3 * port.gid_tbl_len; k++) {
        snprintf(name, sizeof name, "ports/1/%s/%d", entries[k % 3], k / 3);
        add_changing(t, context, folder, name);
    }
}

static void add_for_programs(struct text *t, struct ibv_device *device)
{
    char folder[128];
    int number;
    if (sscanf(device->dev_name, "uverbs%d", &number) != 1)
        return;
    struct ibv_context *context = ibv_open_device(device);
    if (!context)
        return;
    add_device(t, device, number);
    add(t, NODES, device->dev_name, "/dev/null");
    snprintf(folder, sizeof folder, IB "/%s", ibv_get_device_name(device));
    add(t, folder, "ports/1/lid", "0x0"); /* as RoCE has them */
    add(t, folder, "ports/1/sm_lid", "0x0");
    add_port(t, context, folder);
    ibv_close_device(context);
}

/** Links to what the machine has of that in @p parent. */
static void add_others(struct text *t, const char *parent, const char *folder)
{
    char at[64];
    snprintf(at, sizeof at, "%s%s", parent, folder);
    DIR *dir = opendir(at);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.' && strlen(at) + 1 + strlen(e->d_name) < 200)
            add(t, folder, e->d_name, "%s/%s", at, e->d_name);
    if (dir)
        closedir(dir);
}

static void add_all(struct text *t, enum sysfs_reader reader)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (reader == SYSFS_PROGRAMS) {
        add_others(t, "/sys/", IB);
        add_others(t, "/sys/", VERBS);
        add_others(t, "/", NODES);
    }
    add(t, VERBS, "abi_version", "6");
    add(t, "class/misc/rdma_cm", "abi_version", "4");
    for (int i = 0; list && list[i]; i++) {
        if (reader == SYSFS_PROGRAMS)
            add_for_programs(t, list[i]);
        else
            add_for_library(t, list[i], i);
    }
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

/* Other programs start, too: whoever sees the file finds all of it. */
static int write_file(const char *folder, int root, const char *path, const char *contents)
{
    char fresh[FOLDER_MAX + 16];
    snprintf(fresh, sizeof fresh, "%s/.new-XXXXXX", folder);
    int fd = mkostemp(fresh, O_CLOEXEC);
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

static int make_link(int root, const char *path, const char *contents)
{
    char target[256];
    snprintf(target, sizeof target, "%.*s", (int)strcspn(contents, "\n"), contents);
    return symlinkat(target, root, path) == 0 || errno == EEXIST ? 0 : -1;
}

static int make_file(const char *folder, int root, const char *path, const char *contents)
{
    if (faccessat(root, path, R_OK, 0) == 0)
        return 0;
    if (make_parents(root, path) != 0)
        return -1;
    return contents[0] == '/' ? make_link(root, path, contents)
                              : write_file(folder, root, path, contents);
}

/** Those that are not there. */
static int write_all(const char *folder, const struct text *t)
{
    int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = root < 0 ? -1 : 0;
    for (const char *at = t->bytes; !err && at < t->bytes + t->len;) {
        const char *contents = at + strlen(at) + 1;
        err = make_file(folder, root, at, contents);
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

static const char *_Atomic the_folder;

/** The one that is told of: of two threads, the first one's. */
static const char *publish(const char *folder)
{
    const char *mine = strdup(folder), *before = NULL;
    if (!mine || atomic_compare_exchange_strong(&the_folder, &before, mine))
        return mine;
    free((char *)mine);
    return before;
}

const char *uverbs_sysfs(enum sysfs_reader reader)
{
    char base[256] = "", folder[FOLDER_MAX];
    struct text t = {0};
    add_all(&t, reader);
    bool there = !t.failed && make_base(base, sizeof base) == 0;
    snprintf(folder, sizeof folder, "%s/sys-%016llx", base, (unsigned long long)hash(&t));
    there = there && (mkdir(folder, 0700) == 0 || errno == EEXIST) && write_all(folder, &t) == 0;
    if (!there)
        fprintf(stderr, "anywarp: the devices cannot be described in %s: %s\n", base,
                strerror(errno));
    free(t.bytes);
    return there ? publish(folder) : NULL;
}

/* ---- Files that come and go: below a device's ports/1 ---- */

#define DEVICES "/" IB "/"

/** @return the entry that a path names, and the device's and the file's name; or -1 */
static int entry_of(const char *path, char device[64], char file[16])
{
    const char *folder = atomic_load(&the_folder);
    size_t len = folder ? strlen(folder) : 0;
    int end = 0;
    if (!len || strncmp(path, folder, len) != 0 ||
        strncmp(path + len, DEVICES, sizeof DEVICES - 1) != 0)
        return -1;
    path += len + sizeof DEVICES - 1;
    if (sscanf(path, "%63[^/]/%n", device, &end) != 1 || !end)
        return -1;
    return sysfs_port_file(path + end, file);
}

bool uverbs_sysfs_changes(const char *path)
{
    char device[64], file[16];
    return entry_of(path, device, file) >= 0;
}

/** Opens the device of this name, if there is one. */
static struct ibv_context *open_named(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;
    for (int i = 0; list && list[i] && !context; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name))
            context = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    return context;
}

int uverbs_sysfs_open(const char *path)
{
    char device[64], file[16], line[SYSFS_LINE + 1];
    int index = entry_of(path, device, file);
    struct ibv_context *context = index < 0 ? NULL : open_named(device);
    if (!context) {
        errno = ENOENT;
        return -1;
    }
    sysfs_port_line(context, file, index, line);
    ibv_close_device(context);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of libc that libanywarp-paths.so takes, on paths of the device anywarp0 and on others.
 * Linked with nothing: the paths are there because that library is. "paths none" is content if
 * there are none.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NODE   "/dev/infiniband/uverbs192"
#define DEVICE "/sys/class/infiniband/anywarp0"
#define TYPE   DEVICE "/node_type"
#define GID    DEVICE "/ports/1/gids/1"

static int failures;

#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #cond, errno);   \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/** What none of the headers declares; NULL: this libc has none. */
#define FIND(type, name) ((__typeof__(type))dlsym(RTLD_DEFAULT, name))

static void reads(int fd, const char *start, int cloexec)
{
    char buf[64] = "";
    EXPECT(fd >= 0);
    EXPECT(fcntl(fd, F_GETFD) == (cloexec ? FD_CLOEXEC : 0));
    ssize_t n = read(fd, buf, sizeof buf - 1);
    EXPECT(n > 0 && buf[n - 1] == '\n' && !strncmp(buf, start, strlen(start)));
    EXPECT(close(fd) == 0);
}

static void all_ways_to_open(void)
{
    int (*open_2)(const char *, int) = FIND(open_2, "__open_2");
    int (*open64_2)(const char *, int) = FIND(open64_2, "__open64_2");
    int (*openat_2)(int, const char *, int) = FIND(openat_2, "__openat_2");
    int (*openat64_2)(int, const char *, int) = FIND(openat64_2, "__openat64_2");
    reads(open(TYPE, O_RDONLY), "4: RNIC", 0);
    reads(open64(TYPE, O_RDONLY | O_CLOEXEC), "4: RNIC", 1);
    reads(openat(AT_FDCWD, TYPE, O_RDONLY | O_CLOEXEC), "4: RNIC", 1);
    reads(openat64(-1, TYPE, O_RDONLY), "4: RNIC", 0);
    reads(open_2(TYPE, O_RDONLY), "4: RNIC", 0);
    reads(open64_2(TYPE, O_RDONLY), "4: RNIC", 0);
    reads(openat_2(-1, TYPE, O_RDONLY), "4: RNIC", 0);
    reads(openat64_2(-1, TYPE, O_RDONLY), "4: RNIC", 0);
    reads(open(GID, O_RDONLY | O_CLOEXEC), "", 1);
    reads(open(DEVICE "/ports/1/state", O_RDONLY), "4: ACTIVE", 0);
    reads(open("/sys/class/infiniband_verbs/uverbs192/ibdev", O_RDONLY), "anywarp0", 0);
    reads(open("/sys/class/infiniband_verbs//uverbs192/dev", O_RDONLY), "231:384", 0);

    EXPECT(open(TYPE, O_WRONLY) == -1 && errno == EACCES);
    EXPECT(open(TYPE, O_RDONLY | O_TRUNC) == -1 && errno == EACCES);
    EXPECT(open(GID, O_RDWR) == -1 && errno == EACCES);
    EXPECT(open(NODE, O_RDWR) == -1 && errno == ENXIO);
    EXPECT(open(DEVICE "/none", O_RDONLY) == -1 && errno == ENOENT);
    reads(open(DEVICE "/ports/1/gids/200", O_RDONLY), "0000:0000:", 0);
    EXPECT(open("/sys/class/infiniband/none/ports/1/gids/0", O_RDONLY) == -1 && errno == ENOENT);
    EXPECT(open("/sys/class/infinibands", O_RDONLY) == -1 && errno == ENOENT);
    errno = 7;
    EXPECT(close(open(TYPE, O_RDONLY)) == 0 && errno == 7);

    char path[] = "/tmp/paths.XXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    struct stat st;
    EXPECT(fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 0137));
    EXPECT(close(fd) == 0 && unlink(path) == 0);
}

static void streams(void)
{
    FILE *(*opens[])(const char *, const char *) = {fopen, fopen64};
    for (int i = 0; i < 2; i++) {
        char line[64] = "";
        FILE *f = opens[i](TYPE, "re");
        EXPECT(f && fgets(line, sizeof line, f) && !strcmp(line, "4: RNIC\n"));
        EXPECT(f && fcntl(fileno(f), F_GETFD) == FD_CLOEXEC && fclose(f) == 0);
        f = opens[i](GID, "r");
        EXPECT(f && fgets(line, sizeof line, f) && strlen(line) == 40 && fclose(f) == 0);
        EXPECT(!opens[i](TYPE, "w") && errno == EACCES);
        EXPECT(!opens[i](TYPE, "r+") && errno == EACCES);
        EXPECT(!opens[i](TYPE, "?") && errno == EACCES);
        f = opens[i]("/proc/self/comm", "r");
        EXPECT(f && fclose(f) == 0);
    }
}

#define IS_NODE(call, st)                                                                          \
    EXPECT((call) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(231, 384))

/* Programs of before glibc 2.33 have those with two underscores in them. */
static void all_families_of_stat(void)
{
    static const char *const old[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
    static const char *const old_at[] = {"__fxstatat", "__fxstatat64"};
    struct stat st;
    struct stat64 st64;
    struct statx stx;
    IS_NODE(stat(NODE, &st), st);
    IS_NODE(lstat(NODE, &st), st);
    IS_NODE(fstatat(-1, NODE, &st, 0), st);
    IS_NODE(stat64(NODE, &st64), st64);
    IS_NODE(lstat64(NODE, &st64), st64);
    IS_NODE(fstatat64(-1, NODE, &st64, 0), st64);
    EXPECT(statx(-1, NODE, 0, STATX_TYPE, &stx) == 0 && S_ISCHR(stx.stx_mode));
    EXPECT(stx.stx_rdev_major == 231 && stx.stx_rdev_minor == 384);
    for (int i = 0; i < 4; i++) {
        int (*f)(int, const char *, struct stat *) = FIND(f, old[i]);
        IS_NODE(f(1, NODE, &st), st);
#ifdef __x86_64__ /* others number their structs differently, or have none but the newest */
        EXPECT(f(1, DEVICE, &st) == 0 && S_ISDIR(st.st_mode));
        EXPECT(f(1, "/", &st) == 0 && S_ISDIR(st.st_mode));
#endif
    }
    for (int i = 0; i < 2; i++) {
        int (*f)(int, int, const char *, struct stat *, int) = FIND(f, old_at[i]);
        IS_NODE(f(1, -1, NODE, &st, 0), st);
#ifdef __x86_64__
        EXPECT(f(1, -1, DEVICE, &st, 0) == 0 && S_ISDIR(st.st_mode));
        EXPECT(f(1, AT_FDCWD, ".", &st, 0) == 0 && S_ISDIR(st.st_mode));
#endif
    }
    EXPECT(stat(DEVICE, &st) == 0 && S_ISDIR(st.st_mode));
    EXPECT(lstat(GID, &st) == 0 && S_ISREG(st.st_mode));
    EXPECT(fstatat(-1, GID, &st, 0) == 0 && S_ISREG(st.st_mode));
    EXPECT(statx(-1, GID, 0, STATX_TYPE, &stx) == 0 && S_ISREG(stx.stx_mode));
    EXPECT(stat("/", &st) == 0 && S_ISDIR(st.st_mode));
    EXPECT(fstatat(AT_FDCWD, ".", &st, 0) == 0 && S_ISDIR(st.st_mode));
    EXPECT(stat("/dev/infiniband/uverbs1921", &st) == -1 && errno == ENOENT);
    EXPECT(stat("/dev/infiniband/uverbs192x", &st) == -1 && errno == ENOENT);
}

static int is_name(const char *name)
{
    return !strcmp(name, "anywarp0");
}

static int only(const struct dirent *e)
{
    return is_name(e->d_name);
}

static int only64(const struct dirent64 *e)
{
    return is_name(e->d_name);
}

static void listings(void)
{
    struct dirent **names;
    struct dirent64 **names64;
    int seen = 0;
    DIR *dir = opendir("/sys/class/infiniband/");
    for (struct dirent *e; dir && (e = readdir(dir));)
        seen += is_name(e->d_name);
    EXPECT(dir && seen == 1 && closedir(dir) == 0);
    EXPECT(scandir("/sys/class/infiniband", &names, only, alphasort) == 1);
    EXPECT(scandir64("/sys/class/infiniband", &names64, only64, alphasort64) == 1);
    free(names[0]);
    free(names);
    free(names64[0]);
    free(names64);
    EXPECT(!opendir(NODE) && errno == ENOTDIR);
    dir = opendir("/");
    EXPECT(dir && closedir(dir) == 0);
}

static void other_ways_to_look(void)
{
    char buf[256], here[PATH_MAX], long_path[2000] = DEVICE "/";
    EXPECT(access(NODE, R_OK | W_OK) == 0 && access("/", X_OK) == 0);
    EXPECT(access(DEVICE "/none", F_OK) == -1 && errno == ENOENT);
    EXPECT(eaccess(NODE, R_OK) == 0 && euidaccess(NODE, R_OK) == 0);
    EXPECT(faccessat(-1, NODE, R_OK, 0) == 0 && faccessat(AT_FDCWD, ".", R_OK, 0) == 0);
    EXPECT(getxattr(TYPE, "user.none", buf, sizeof buf) == -1 && errno != ENOENT);
    EXPECT(lgetxattr(TYPE, "user.none", buf, sizeof buf) == -1 && errno != ENOENT);
    EXPECT(listxattr(TYPE, buf, sizeof buf) >= 0 || errno != ENOENT);
    EXPECT(llistxattr(TYPE, buf, sizeof buf) >= 0 || errno != ENOENT);
    EXPECT(getcwd(here, sizeof here) && chdir(DEVICE) == 0);
    EXPECT(access("node_type", R_OK) == 0 && chdir(here) == 0);
    memset(long_path + strlen(long_path), 'x', 1500);
    EXPECT(access(long_path, F_OK) == -1);
}

static void where_paths_lead(void)
{
    char buf[PATH_MAX], *path;
    ssize_t (*chk)(const char *, char *, size_t, size_t) = FIND(chk, "__readlink_chk");
    ssize_t (*at_chk)(int, const char *, char *, size_t, size_t) = FIND(at_chk, "__readlinkat_chk");
    char *(*realpath_chk)(const char *, char *, size_t) = FIND(realpath_chk, "__realpath_chk");
    EXPECT(readlink(NODE, buf, sizeof buf) == -1 && errno == EINVAL);
    EXPECT(readlinkat(-1, NODE, buf, sizeof buf) == -1 && errno == EINVAL);
    EXPECT(chk(NODE, buf, sizeof buf, sizeof buf) == -1 && errno == EINVAL);
    EXPECT(at_chk(-1, NODE, buf, sizeof buf, sizeof buf) == -1 && errno == EINVAL);
    EXPECT(readlink(DEVICE, buf, sizeof buf) == -1 && errno == EINVAL);
    EXPECT(readlink("/proc/self", buf, sizeof buf) > 0);
    EXPECT(readlinkat(-1, "/proc/self", buf, sizeof buf) > 0);
    EXPECT(chk("/proc/self", buf, sizeof buf, sizeof buf) > 0);
    EXPECT(at_chk(-1, "/proc/self", buf, sizeof buf, sizeof buf) > 0);

    EXPECT(realpath(NODE, buf) == buf && !strcmp(buf, NODE));
    EXPECT(realpath_chk(NODE, buf, sizeof buf) == buf && !strcmp(buf, NODE));
    EXPECT((path = realpath(NODE, NULL)) && !strcmp(path, NODE));
    free(path);
    /* Folders are where they are: what is beside them is found from there. */
    EXPECT((path = realpath(DEVICE, NULL)) && strstr(path, "/class/infiniband/anywarp0"));
    EXPECT(strcat(strcpy(buf, path), "/ports/1/gids/0") && access(buf, R_OK) == 0);
    free(path);
    EXPECT(realpath_chk(DEVICE, buf, sizeof buf) == buf && access(buf, X_OK) == 0);
    EXPECT((path = canonicalize_file_name("/proc/..")) && !strcmp(path, "/"));
    free(path);
}

static int status_of(pid_t pid)
{
    int status = -1;
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A child of vfork() makes nothing, and sees what is made. */
static void children_first(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        _exit(access(TYPE, F_OK) == 0);
    EXPECT(status_of(pid) == 0);
    pid = fork();
    if (pid == 0)
        _exit(access(TYPE, F_OK) != 0);
    EXPECT(status_of(pid) == 0);
}

static void children(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        _exit(access(TYPE, F_OK) != 0 || open(GID, O_RDONLY) < 0);
    EXPECT(status_of(pid) == 0);
    pid = fork();
    if (pid == 0) {
        failures = 0;
        reads(open(GID, O_RDONLY), "", 0);
        _exit(failures != 0);
    }
    EXPECT(status_of(pid) == 0);
}

static pthread_barrier_t together;

static void *look(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&together);
    return access(TYPE, R_OK) == 0 ? arg : NULL;
}

static void threads_at_once(void)
{
    enum { N = 8 };
    pthread_t threads[N];
    EXPECT(pthread_barrier_init(&together, NULL, N) == 0);
    for (int i = 0; i < N; i++)
        EXPECT(pthread_create(&threads[i], NULL, look, &failures) == 0);
    for (int i = 0; i < N; i++) {
        void *result = NULL;
        EXPECT(pthread_join(threads[i], &result) == 0 && result == &failures);
    }
}

/* Whatever is asked for: it is as if the library were not there. */
static void nothing(void)
{
    struct stat st;
    EXPECT(stat(DEVICE, &st) == -1 && errno == ENOENT);
    EXPECT(stat(NODE, &st) == -1 && errno == ENOENT);
    EXPECT(open(TYPE, O_RDONLY) == -1 && errno == ENOENT);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "none")) {
        nothing();
    } else {
        children_first();
        threads_at_once();
        all_ways_to_open();
        streams();
        all_families_of_stat();
        listings();
        other_ways_to_look();
        where_paths_lead();
        children();
    }
    return failures != 0;
}

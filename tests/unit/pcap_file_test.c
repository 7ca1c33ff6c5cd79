/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files a capture is written over: in a folder of many users there may be traps; and when it
 * ends.
 */
#include "observe/pcap_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTENT "what was there"
#define NOBODY  65534

static char dir[] = "/tmp/anywarp-pcap-XXXXXX";
static char path[64], other[64];

static void make(const char *name, mode_t mode)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, CONTENT, sizeof(CONTENT)), sizeof(CONTENT));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void is_untouched(const char *name, mode_t mode)
{
    char now[64];
    struct stat st;
    int fd = open(name, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, now, sizeof(now)), sizeof(CONTENT));
    assert_memory_equal(now, CONTENT, sizeof(CONTENT));
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, mode);
    close(fd);
}

/** Opens it in a process of its own, as @p user; 0: as this one. @return whether it is captured */
static bool opens(uid_t user)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("ANYWARP_PCAP", path, 1);
        if (user && seteuid(user))
            _exit(2);
        _exit(!iw_pcap_file_open());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

static void is_new(void)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(st.st_size > (off_t)sizeof(CONTENT));
}

static void a_new_one(void **state)
{
    (void)state;
    assert_true(opens(0));
    is_new();
}

/** An old capture; others could read it. */
static void our_own(void **state)
{
    (void)state;
    make(path, 0644);
    assert_true(opens(0));
    is_new();
}

static void a_symbolic_link(void **state)
{
    (void)state;
    make(other, 0640);
    assert_int_equal(symlink(other, path), 0);
    assert_false(opens(0));
    is_untouched(other, 0640);
}

static void a_hard_link(void **state)
{
    (void)state;
    make(other, 0640);
    assert_int_equal(link(other, path), 0);
    assert_false(opens(0));
    is_untouched(other, 0640);
}

static void of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can make one */
    make(path, 0666);
    assert_false(opens(NOBODY));
    is_untouched(path, 0666);
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    assert_false(opens(0));
    is_untouched(path, 0666);
}

static void a_folder(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(opens(0));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(opens(0));
}

static void no_folder_for_it(void **state)
{
    char is[sizeof(path)];
    (void)state;
    memcpy(is, path, sizeof(is));
    snprintf(path, sizeof(path), "%s/none/capture", dir);
    assert_false(opens(0));
    memcpy(path, is, sizeof(is));
}

/* ---- a process that captures ---- */

#define MB 1048576

/** Runs @p body in a process with a capture of at most 1 MiB. */
static void captures(const char *name, void (*body)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20);
        setenv("ANYWARP_PCAP", name, 1);
        setenv("ANYWARP_PCAP_MB", "1", 1);
        body();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/** In the child, where cmocka has no say. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void add(uint32_t len)
{
    static const uint8_t data[60000];
    const struct tcp_ip h = {.sport = 1, .dport = 2, .flags = TCP_FLAG_ACK};
    iw_pcap_file_add(&h, data, len, true);
}

static off_t size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? -1 : st.st_size;
}

static void fill(void)
{
    must(iw_pcap_file_open());
    add(1);
    must(size_of(path) > 100);
    for (int i = 0; i < 20; i++)
        add(60000);
    must(!iw_pcap_file_open());
    off_t full = size_of(path);
    must(full <= MB && full > MB - 60200);
    add(1); /* there would be room, but a capture with a hole is none */
    must(size_of(path) == full);
}

static void it_ends_when_it_is_full(void **state)
{
    (void)state;
    captures(path, fill);
}

static void limited(void)
{
    const struct rlimit limit = {100000, 100000};
    must(!setrlimit(RLIMIT_FSIZE, &limit));
    must(iw_pcap_file_open());
    add(60000);
    add(60000); /* no SIGXFSZ comes, which would end the process */
    must(!iw_pcap_file_open());
    must(size_of(path) > 60000 && size_of(path) < 100000);
}

static void it_ends_at_the_limit_of_the_process(void **state)
{
    (void)state;
    captures(path, limited);
}

/* What a packet's write did not get out whole is taken back. */
static void no_room(void)
{
    must(iw_pcap_file_open());
    add(100);
    off_t before = size_of(path);
    const struct rlimit limit = {(rlim_t)before + 10, (rlim_t)before + 10};
    signal(SIGXFSZ, SIG_IGN);
    must(!setrlimit(RLIMIT_FSIZE, &limit));
    add(100);
    must(!iw_pcap_file_open());
    must(size_of(path) == before);
}

static void no_packet_is_written_in_part(void **state)
{
    (void)state;
    captures(path, no_room);
}

static void close_all(void)
{
    must(iw_pcap_file_open());
    off_t before = size_of(path);
    for (int fd = 3; fd < 4096; fd++)
        close(fd);
    int lowest = open(other, O_RDWR | O_CREAT, 0600), n = 0;
    must(lowest >= 0);
    while (n < 4096 && fcntl(lowest, F_DUPFD, lowest) >= 0)
        n++; /* one of these has the number that the capture had */
    add(100);
    must(!iw_pcap_file_open());
    must(size_of(path) == before);
    must(size_of(other) == 0);
}

static void what_the_program_opened_there_is_not_written_to(void **state)
{
    (void)state;
    captures(path, close_all);
}

static bool in_child(void (*body)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        body();
        exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void capture_nothing(void)
{
    off_t before = size_of(path);
    iw_pcap_file_leave();
    must(!iw_pcap_file_open());
    add(100);
    must(size_of(path) == before);
}

static void with_a_child(void)
{
    must(iw_pcap_file_open());
    must(in_child(capture_nothing));
    off_t before = size_of(path);
    add(100);
    must(size_of(path) > before);
}

static void a_child_leaves_the_file_to_its_parent(void **state)
{
    (void)state;
    captures(path, with_a_child);
}

static int opened[2], enough[2];

static void until_enough(void)
{
    char c;
    must(iw_pcap_file_open());
    must(write(opened[1], "", 1) == 1);
    must(read(enough[0], &c, 1) == 1);
}

static void a_second_process_has_none(void **state)
{
    char c;
    (void)state;
    assert_int_equal(pipe(opened) | pipe(enough), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        captures(path, until_enough);
        _exit(0);
    }
    assert_int_equal(read(opened[0], &c, 1), 1);
    assert_false(opens(0));
    assert_int_equal(write(enough[1], "", 1), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    is_new();
    assert_true(opens(0));
    close(opened[0]);
    close(opened[1]);
    close(enough[0]);
    close(enough[1]);
}

/** The file of this process, for a pattern with its number in the middle. */
static const char *own_path(void)
{
    static char own[sizeof(path) + 32];
    snprintf(own, sizeof(own), "%s.%d.pcap", path, (int)getpid());
    return own;
}

static void capture_apart(void)
{
    iw_pcap_file_leave();
    must(iw_pcap_file_open());
    must(size_of(own_path()) > 0);
    must(!unlink(own_path()));
}

static void with_numbers(void)
{
    must(iw_pcap_file_open());
    must(in_child(capture_apart));
    must(size_of(own_path()) > 0);
    must(!unlink(own_path()));
}

static void with_its_number_each_process_has_one(void **state)
{
    char pattern[sizeof(path) + 8];
    (void)state;
    snprintf(pattern, sizeof(pattern), "%s.%%p.pcap", path);
    captures(pattern, with_numbers);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(dir) || chmod(dir, 0755))
        return -1;
    snprintf(path, sizeof(path), "%s/capture", dir);
    snprintf(other, sizeof(other), "%s/other", dir);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_new_one, clear),
        cmocka_unit_test_teardown(our_own, clear),
        cmocka_unit_test_teardown(a_symbolic_link, clear),
        cmocka_unit_test_teardown(a_hard_link, clear),
        cmocka_unit_test_teardown(of_another_user, clear),
        cmocka_unit_test_teardown(a_folder, clear),
        cmocka_unit_test(no_folder_for_it),
        cmocka_unit_test_teardown(it_ends_when_it_is_full, clear),
        cmocka_unit_test_teardown(it_ends_at_the_limit_of_the_process, clear),
        cmocka_unit_test_teardown(no_packet_is_written_in_part, clear),
        cmocka_unit_test_teardown(what_the_program_opened_there_is_not_written_to, clear),
        cmocka_unit_test_teardown(a_child_leaves_the_file_to_its_parent, clear),
        cmocka_unit_test_teardown(a_second_process_has_none, clear),
        cmocka_unit_test(with_its_number_each_process_has_one),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

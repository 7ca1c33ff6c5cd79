/* SPDX-License-Identifier: BSD-2-Clause */
/* Where programs are sent that look for sysfs, and what they read there. */
#include "verbs/sysfs.h"

#include "vectors.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void the_folder(void **state)
{
    static const struct {
        const char *env, *path;
    } rows[] = {{NULL, "/sys"}, {"/a/b", "/a/b"}, {"/a/b///", "/a/b"}, {"/", ""}, {"", ""}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) { /* it is asked for once a process */
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            unsetenv("SYSFS_PATH");
            if (rows[i].env)
                setenv("SYSFS_PATH", rows[i].env, 1);
            _exit(strcmp(ibv_get_sysfs_path(), rows[i].path) ? 1 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status)
            fail_msg("row %zu: status %d", i, status);
    }
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void a_file(void **state)
{
    char dir[] = "test-dir-XXXXXX", path[64], buf[8], name[600];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/x", dir);
    static const struct {
        const char *text;
        int result, err;
    } rows[] = {
        {"", 0, 0},
        {"\n", 0, 0},
        {"abc", 3, 0},
        {"abc\n", 3, 0},
        {"abcdefg", 7, 0},
        {"abcdefg\n", 7, 0},
        {"abcdefgh", -1, ENOSPC},
        {"a\nb\n", 3, 0},
        {"abcdefghijkl\n", -1, ENOSPC},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        put(path, rows[i].text);
        memset(buf, '#', sizeof(buf));
        int n = ibv_read_sysfs_file(dir, "x", buf, sizeof(buf));
        if (n != rows[i].result || (n < 0 && errno != rows[i].err) ||
            (n > 0 && (memcmp(buf, rows[i].text, (size_t)n) || buf[n])))
            fail_msg("row %zu: %d", i, n);
    }
    assert_int_equal(ibv_read_sysfs_file(dir, "none", buf, sizeof(buf)), -1);
    assert_int_equal(errno, ENOENT);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(ibv_read_sysfs_file(dir, name, buf, sizeof(buf)), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(ibv_read_sysfs_file(NULL, "x", buf, sizeof(buf)), -1);
    assert_int_equal(errno, EINVAL);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder),
        cmocka_unit_test(a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

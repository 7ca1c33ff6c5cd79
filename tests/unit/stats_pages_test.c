/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of statistics on a machine with pages of 64 KB: it grows to its end, and no further. */
#include "observe/stats.h"
#include "observe/stats_file.h"
#include "observe/stats_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 65536

static char dir[] = "/tmp/anywarp-stats-XXXXXX";

/* In place of libc's. */
int getpagesize(void)
{
    return PAGE;
}

/** What is behind the end of the memory would be written over: the writer asserts that it is not.
 */
static void all_rows(void **state)
{
    struct stats_owner self = stats_self();
    char name[STATS_NAME_MAX], path[128];
    struct stat st;
    (void)state;
    for (uint32_t i = 1; i <= STATS_QPS; i++)
        assert_int_equal(iw_stats_qp_take(i, NULL, NULL)->qp_num, i);
    assert_int_equal((uintptr_t)iw_stats_page() % PAGE, 0);
    stats_name(name, &self);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size % PAGE, 0);
    assert_true((size_t)st.st_size >= sizeof(struct stats_page));
    assert_true((size_t)st.st_size < sizeof(struct stats_page) + PAGE);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    struct stats_qp last;
    long at = offsetof(struct stats_page, qps) + (STATS_QPS - 1) * sizeof(last);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fread(&last, sizeof(last), 1, f), 1);
    fclose(f);
    assert_int_equal(last.qp_num, STATS_QPS);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_rows)};
    if (!mkdtemp(dir) || setenv("ANYWARP_STATS", dir, 1))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

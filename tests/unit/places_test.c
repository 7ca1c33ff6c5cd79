/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults/places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/anywarp-places-XXXXXX";
static struct iw_places *file;

__attribute__((noinline)) static void take(struct iw_callers *s, enum iw_fault fault)
{
    iw_callers_take(s, fault);
    __asm__ volatile("");
}

static void a_stack(void **state)
{
    static struct iw_callers s, again, other, elsewhere;
    (void)state;
    for (volatile int i = 0; i < 2; i++) /* one call */
        take(i ? &again : &s, IW_FAULT_REG_MR);
    take(&other, IW_FAULT_ALLOC_PD);
    take(&elsewhere, IW_FAULT_REG_MR);
    assert_true(s.n > 1);
    assert_true(s.hash == again.hash);
    assert_true(s.hash != other.hash);
    assert_true(s.hash != elsewhere.hash);
    iw_callers_name(&s);
    assert_non_null(strstr(s.text, "/places_test+0x"));
    assert_non_null(strstr(s.text, " /"));
    for (int i = s.n; i < IW_STACK_FRAMES;
         i++) /* as deep as it gets: what is too long is left out */
        s.frame[i] = s.frame[0];
    s.n = IW_STACK_FRAMES;
    iw_callers_name(&s);
    assert_true(strlen(s.text) < sizeof(s.text));
    s.frame[0] = NULL; /* in no file */
    s.n = 1;
    iw_callers_name(&s);
    assert_string_equal(s.text, "");
}

static void first_and_last(void **state)
{
    static struct iw_callers s;
    (void)state;
    assert_true(iw_places_open(path));
    take(&s, IW_FAULT_POST_SEND);
    iw_callers_name(&s);
    assert_null(iw_place_known(&s));
    struct iw_place *p = iw_place_new(&s, "name@000001", IW_FAULT_POST_SEND, "qp");
    assert_non_null(p);
    assert_ptr_equal(iw_place_known(&s), p);
    assert_int_equal(file->place[0].whole, 0);
    iw_place_called(p, 3, 7);
    iw_place_called(p, 4, 1);
    iw_place_called(p, 5, 9);
    const struct iw_place *seen = &file->place[0];
    assert_int_equal(seen->whole, 1);
    assert_int_equal(seen->calls, 3);
    assert_int_equal(seen->first_number, 3);
    assert_int_equal(seen->first_call, 7);
    assert_int_equal(seen->last_number, 5);
    assert_int_equal(seen->last_call, 9);
    assert_string_equal(seen->process, "name@000001");
    assert_string_equal(seen->fault, "post_send");
    assert_string_equal(seen->kind, "qp");
    assert_string_equal(seen->stack, s.text);
    iw_places_forget();
    assert_null(iw_place_known(&s));
}

static void there_is_an_end(void **state)
{
    static struct iw_callers s;
    (void)state;
    file->next = IW_PLACES - 1;
    assert_non_null(iw_place_new(&s, "a", IW_FAULT_POST_SEND, "qp"));
    assert_null(iw_place_new(&s, "b", IW_FAULT_POST_SEND, "qp"));
    assert_false(iw_places_open("/nowhere/at/all"));
    assert_null(iw_places_map("/proc/self/environ")); /* which cannot be written */
}

static int open_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, sizeof(*file)) != 0)
        return -1;
    close(fd);
    file = iw_places_map(path);
    return file ? 0 : -1;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack),
        cmocka_unit_test(first_and_last),
        cmocka_unit_test(there_is_an_end),
    };
    return cmocka_run_group_tests(tests, open_file, remove_file);
}

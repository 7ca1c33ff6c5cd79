/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/error_text.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void of_a_reset(void **state)
{
    char text[IW_ERROR_TEXT_MAX];
    (void)state;
    iw_error_text(ECONNRESET, text);
    assert_string_equal(text, "ECONNRESET, Connection reset by peer");
    iw_error_text(9999, text);
    assert_string_equal(text, "errno 9999");
}

/** Every error that is named at all has the words of the C library, where that has them. */
static void as_the_c_library(void **state)
{
    char text[IW_ERROR_TEXT_MAX], want[128];
    unsigned named = 0;
    (void)state;
    const char *(*name)(int) = (const char *(*)(int))dlsym(RTLD_DEFAULT, "strerrorname_np");
    const char *(*describe)(int) = (const char *(*)(int))dlsym(RTLD_DEFAULT, "strerrordesc_np");
    if (!name || !describe)
        skip();
    for (int error = 1; error < 200; error++) {
        iw_error_text(error, text);
        if (!strncmp(text, "errno ", 6))
            continue;
        snprintf(want, sizeof(want), "%s, %s", name(error), describe(error));
        assert_string_equal(text, want);
        named++;
    }
    assert_true(named > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_reset),
        cmocka_unit_test(as_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A library without OpenSSL: whoever asks for TLS is refused, and told why. */
#include "conn/stream_tls.h"
#include "env/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void there_are_no_keys(void **state)
{
    const char *why = NULL;
    (void)state;
    assert_null(iw_tls_context(&why));
    assert_non_null(why);
    assert_non_null(strstr(why, "built without TLS"));
}

static void there_is_no_stream(void **state)
{
    struct iwc_stream under = {0};
    (void)state;
    assert_null(iwc_stream_tls_create(NULL, &under, true, NULL, NULL));
    iwc_stream_tls_free(NULL);
}

static void nobody_is_anywhere(void **state)
{
    struct sockaddr_storage addr = {.ss_family = AF_INET};
    struct tls_peer peer = {0};
    (void)state;
    assert_false(iw_tls_is_for(&peer, &addr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_no_keys),
        cmocka_unit_test(there_is_no_stream),
        cmocka_unit_test(nobody_is_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

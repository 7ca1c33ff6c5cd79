/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/ephemeral.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/** A round gives each port of the system's range once, and then begins anew. */
static void round_and_round(void **state)
{
    static unsigned char seen[UINT16_MAX + 1];
    unsigned low = 0, high = 0;
    (void)state;
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u %u", &low, &high), 2);
    fclose(f);
    uint16_t first = iw_ephemeral_port(), port = first;
    for (unsigned i = low; i <= high; i++) {
        assert_in_range(port, low, high);
        assert_int_equal(seen[port]++, 0);
        port = iw_ephemeral_port();
    }
    assert_int_equal(port, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_and_round)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

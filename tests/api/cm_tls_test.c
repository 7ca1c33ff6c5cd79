/* SPDX-License-Identifier: BSD-2-Clause */
/* Without usable keys ANYWARP_TLS lets no connection be made, in neither direction. */
#include "cm_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void listen_is_refused(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    struct sockaddr_storage addr;
    (void)state;
    assert_non_null(channel);
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    cm_address(&addr, "127.0.0.1", 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
    errno = 0;
    assert_int_equal(rdma_listen(id, 0), -1);
    assert_int_equal(errno, EACCES);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

static void connect_is_refused(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage addr;
    struct rdma_conn_param param = {0};
    (void)state;
    assert_non_null(channel);
    cm_address(&addr, "127.0.0.1", htons(1));
    struct rdma_cm_id *id = cm_prepare(channel, &addr);
    errno = 0;
    assert_int_equal(rdma_connect(id, &param), -1);
    assert_int_equal(errno, EACCES);
    cm_quiet(channel, 0);
    cm_drop(id);
    rdma_destroy_event_channel(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listen_is_refused),
        cmocka_unit_test(connect_is_refused),
    };
    setenv("ANYWARP_TLS", "allow", 1);
    setenv("ANYWARP_TLS_PSK", "/nowhere/psk", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

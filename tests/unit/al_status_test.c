/* SPDX-License-Identifier: BSD-2-Clause */
/* The access layer's small translations: errno, access rights, services and GIDs. */
#include "al/access.h"
#include "al/address.h"
#include "al/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void errnos(void **state)
{
    (void)state;
    static const struct {
        int error;
        ib_api_status_t status;
    } rows[] = {
        {0, IB_SUCCESS},
        {ENOMEM, IB_INSUFFICIENT_MEMORY},
        {EAGAIN, IB_INSUFFICIENT_RESOURCES},
        {EMFILE, IB_INSUFFICIENT_RESOURCES},
        {ENOSPC, IB_INSUFFICIENT_RESOURCES},
        {EBUSY, IB_RESOURCE_BUSY},
        {EOPNOTSUPP, IB_UNSUPPORTED},
        {ENOSYS, IB_UNSUPPORTED},
        {EACCES, IB_INVALID_PERMISSION},
        {EPERM, IB_INVALID_PERMISSION},
        {ETIMEDOUT, IB_TIMEOUT},
        {ENODEV, IB_ERROR},
        {EINVAL, IB_INVALID_SETTING},
        {EFAULT, IB_INVALID_SETTING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(al_status(rows[i].error, IB_INVALID_SETTING), rows[i].status);
}

static void rights(void **state)
{
    (void)state;
    const ib_access_t all =
        IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC | IB_AC_LOCAL_WRITE | IB_AC_MW_BIND;
    assert_int_equal(al_access_to_verbs(all), IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                                  IBV_ACCESS_REMOTE_ATOMIC |
                                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    for (ib_access_t access = 0; access <= all; access++)
        assert_int_equal(al_access_of_verbs((unsigned)al_access_to_verbs(access)), access);
    assert_int_equal(al_access_check(all), IB_SUCCESS);
    assert_int_equal(al_access_check(IB_AC_RDMA_READ), IB_SUCCESS);
    assert_int_equal(al_access_check(IB_AC_RDMA_WRITE), IB_INVALID_PERMISSION);
    assert_int_equal(al_access_check(IB_AC_ATOMIC), IB_INVALID_PERMISSION);
    assert_int_equal(al_access_check(all << 1), IB_UNSUPPORTED);
}

static void services(void **state)
{
    (void)state;
    assert_int_equal(al_port_of(CL_HTON64(7174)), 7174);
    assert_int_equal(al_port_of(CL_HTON64(UINT64_C(0x1060000) | 7174)), 7174);
    assert_int_equal(al_port_of(CL_HTON64(UINT64_C(0x1110000) | 7174)), 0); /* UDP's */
    assert_int_equal(al_port_of(CL_HTON64(0x10000)), 0);
    assert_int_equal(al_port_of(7174), 0); /* who forgot the order of the network */
}

static void addresses(void **state)
{
    (void)state;
    struct sockaddr_storage addr;
    struct sockaddr_in *four = (struct sockaddr_in *)&addr;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&addr;
    ib_gid_t gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1}}, back;
    char text[INET6_ADDRSTRLEN];
    assert_true(al_address_of(&gid, 80, &addr));
    assert_int_equal(addr.ss_family, AF_INET);
    assert_string_equal(inet_ntop(AF_INET, &four->sin_addr, text, sizeof text), "192.0.2.1");
    assert_int_equal(ntohs(four->sin_port), 80);
    al_gid_of((struct sockaddr *)&addr, &back);
    assert_memory_equal(&back, &gid, sizeof gid);

    assert_int_equal(inet_pton(AF_INET6, "fd00::7", &gid), 1);
    assert_true(al_address_of(&gid, 80, &addr));
    assert_int_equal(addr.ss_family, AF_INET6);
    assert_int_equal(ntohs(six->sin6_port), 80);
    al_gid_of((struct sockaddr *)&addr, &back);
    assert_memory_equal(&back, &gid, sizeof gid);

    ib_gid_t none = {.raw = {0}}, mac = {.raw = {2, 0xfc, 0, 0, 0, 1}};
    assert_false(al_address_of(&none, 80, &addr));
    assert_false(al_address_of(&mac, 80, &addr));
    addr.ss_family = AF_UNIX;
    al_gid_of((struct sockaddr *)&addr, &back);
    assert_memory_equal(&back, &none, sizeof none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errnos),
        cmocka_unit_test(rights),
        cmocka_unit_test(services),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

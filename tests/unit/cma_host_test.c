/* SPDX-License-Identifier: BSD-2-Clause */
/* Which ids hear of which change of the host's addresses and interfaces. */
#include "unit/cma_mock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NONE     -1

static struct rdma_event_channel *channel;

static int setup(void **unused)
{
    (void)unused;
    mock_reset();
    channel = rdma_create_event_channel();
    return channel ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_event_channel(channel);
    return mock.cms | mock.pds;
}

/* ---- the host ---- */

static void set_local(int i, const char *address, unsigned ifindex, uint8_t mac)
{
    struct iw_cm_local *l = &mock.locals[i];
    memset(l, 0, sizeof *l);
    if (inet_pton(AF_INET6, address, &l->gid) != 1) {
        l->gid.raw[10] = l->gid.raw[11] = 0xff;
        assert_int_equal(inet_pton(AF_INET, address, l->gid.raw + 12), 1);
    }
    l->ifindex = ifindex;
    l->mac[5] = mac;
}

/* The address of the test's id on this interface, or 0 for nowhere; always another one beside. */
static void set_host(const char *address, unsigned ifindex, uint8_t mac, bool absent)
{
    set_local(0, "198.51.100.1", 9, 9);
    if (ifindex)
        set_local(1, address, ifindex, mac);
    mock.nlocals = ifindex ? 2 : 1;
    mock.absent = absent;
}

/* ---- ids ---- */

static struct rdma_cm_id *bound(const char *address, unsigned scope)
{
    struct sockaddr_storage addr = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&addr;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&addr;
    struct rdma_cm_id *id;
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        addr.ss_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, address, &six->sin6_addr), 1);
        addr.ss_family = AF_INET6;
        six->sin6_scope_id = scope;
    }
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
    return id;
}

static void expect(struct rdma_cm_id *id, int type)
{
    struct rdma_cm_event *event;
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), type == NONE ? 0 : 1);
    if (type == NONE)
        return;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, type);
    assert_int_equal(event->status, 0);
    assert_ptr_equal(event->id, id);
    assert_null(event->listen_id);
    rdma_ack_cm_event(event);
    expect(id, NONE);
}

/* ---- one change after another ---- */

static const struct {
    unsigned ifindex; /* that has the address now, 0: none */
    uint8_t mac;
    bool absent; /* the device's interface */
    int event;
} steps[] = {
    {2, 1, false, NONE},                      /* nothing that matters changed */
    {2, 7, false, RDMA_CM_EVENT_ADDR_CHANGE}, /* another MAC, as of a bond */
    {2, 7, false, NONE},
    {3, 7, false, RDMA_CM_EVENT_ADDR_CHANGE}, /* moved */
    {0, 0, false, RDMA_CM_EVENT_ADDR_CHANGE}, /* gone */
    {0, 0, false, NONE},
    {4, 1, false, NONE},                        /* back; that it went was told */
    {0, 0, true, RDMA_CM_EVENT_DEVICE_REMOVAL}, /* with the device, which says it all */
    {0, 0, true, NONE},
    {4, 1, false, NONE},
    {4, 1, true, RDMA_CM_EVENT_DEVICE_REMOVAL},
    {5, 1, true, RDMA_CM_EVENT_ADDR_CHANGE},
};

static void walk(struct rdma_cm_id *id, const char *address)
{
    for (size_t i = 0; i < COUNT(steps); i++) {
        set_host(address, steps[i].ifindex, steps[i].mac, steps[i].absent);
        mock_host_changed();
        expect(id, steps[i].event);
    }
}

/* The first id of the process starts the watch: the host is set before. */
static void start(const char *address)
{
    set_host(address, 2, 1, false);
    rdma_destroy_id(bound("192.0.2.1", 0));
    mock_host_changed();
}

static void to_and_fro(const char *address)
{
    set_host(address, 3, 8, true);
    mock_host_changed();
    set_host(address, 2, 1, false);
    mock_host_changed();
}

static void a_bound_id(void **unused)
{
    static const char *const addresses[] = {"192.0.2.7", "2001:db8::7"};
    (void)unused;
    for (size_t i = 0; i < COUNT(addresses); i++) {
        start(addresses[i]);
        struct rdma_cm_id *id = bound(addresses[i], 0);
        walk(id, addresses[i]);
        rdma_destroy_id(id);
    }
}

static void a_listener_and_its_child(void **unused)
{
    struct rdma_cm_id *listener, *child;
    struct rdma_cm_event *event;
    (void)unused;
    start("192.0.2.7");
    assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_listen(listener, 0), 0);     /* on all addresses: hears nothing */
    assert_int_equal(mock_request(listener, NULL), 0); /* to 192.0.2.7 */
    to_and_fro("192.0.2.7");                           /* the program does not know the child yet */
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    child = event->id;
    rdma_ack_cm_event(event);
    expect(child, NONE);
    walk(child, "192.0.2.7");
    rdma_destroy_id(child);
    set_host("192.0.2.7", 0, 0, false);
    mock_host_changed();
    expect(listener, NONE);
    rdma_destroy_id(listener);
}

static void a_resolved_id(void **unused)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7000)};
    struct rdma_cm_id *id;
    (void)unused;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    start("127.0.0.1");
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 100), 0);
    to_and_fro("127.0.0.1"); /* nor does it know this one's address */
    expect(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    walk(id, "127.0.0.1");
    rdma_destroy_id(id);
}

static void a_link_local_address_is_of_its_link(void **unused)
{
    (void)unused;
    start("fe80::1");
    struct rdma_cm_id *id = bound("fe80::1", 2);
    set_local(2, "fe80::1", 3, 3); /* of another */
    mock.nlocals = 3;
    mock_host_changed();
    expect(id, NONE);
    mock.locals[1] = mock.locals[2];
    mock.nlocals = 2;
    mock_host_changed();
    expect(id, RDMA_CM_EVENT_ADDR_CHANGE);
    rdma_destroy_id(id);
}

/* An address that no interface lists; a kernel that does not say. */
static void what_is_not_known_does_not_go(void **unused)
{
    (void)unused;
    start("192.0.2.7");
    struct rdma_cm_id *id = bound("127.0.0.5", 0), *other = bound("192.0.2.7", 0);
    mock.nlocals = -EMFILE;
    mock_host_changed();
    expect(id, NONE);
    set_host("192.0.2.7", 2, 1, false);
    mock_host_changed();
    expect(id, NONE);
    rdma_destroy_id(id);
    rdma_destroy_id(other);
}

static void an_event_that_nobody_takes_goes_with_its_id(void **unused)
{
    (void)unused;
    start("192.0.2.7");
    struct rdma_cm_id *id = bound("192.0.2.7", 0);
    set_host("192.0.2.7", 0, 0, true);
    mock_host_changed();
    assert_int_equal(rdma_destroy_id(id), 0);
    expect(NULL, NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_bound_id, setup, teardown),
        cmocka_unit_test_setup_teardown(a_listener_and_its_child, setup, teardown),
        cmocka_unit_test_setup_teardown(a_resolved_id, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_local_address_is_of_its_link, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_known_does_not_go, setup, teardown),
        cmocka_unit_test_setup_teardown(an_event_that_nobody_takes_goes_with_its_id, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

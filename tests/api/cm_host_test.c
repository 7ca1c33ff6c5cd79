/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses and interfaces that go away under ids and connections. The test makes a network
 * namespace of its own; the program runs itself once for each way to configure the devices.
 */
#include "cm_kit.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED  77
#define QUIET_MS 100
#define ADDRESS  "192.0.2.7"

static void run(const char *command)
{
    if (system(command))
        fail_msg("failed: %s", command);
}

static void expect(struct rdma_event_channel *channel, struct rdma_cm_id *id,
                   enum rdma_cm_event_type type)
{
    struct rdma_cm_event *ev = cm_next(channel);
    assert_string_equal(rdma_event_str(ev->event), rdma_event_str(type));
    assert_int_equal(ev->status, 0);
    assert_ptr_equal(ev->id, id);
    assert_null(ev->listen_id);
    rdma_ack_cm_event(ev);
}

static bool set_up_host(void)
{
    return system("ip link set lo up && ip link add v0 type veth peer name v1 2>/dev/null && "
                  "ip link set v0 up && ip link set v1 up") == 0;
}

/* ---- one device for all interfaces ---- */

static void an_address_is_taken_away(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *prepared;
    (void)state;
    run("ip addr add " ADDRESS "/24 dev v0");
    cm_open(&s, ADDRESS);
    cm_connect(&s, &a, &b);
    prepared = cm_prepare(s.a, &s.addr);
    run("ip addr add 192.0.2.8/24 dev v0"); /* another: nothing to be told */
    cm_quiet(s.a, QUIET_MS);
    run("ip addr del " ADDRESS "/24 dev v0");
    /* The order of ids is that in which they got their address. */
    expect(s.b, s.listener, RDMA_CM_EVENT_ADDR_CHANGE);
    expect(s.b, b, RDMA_CM_EVENT_ADDR_CHANGE);
    expect(s.a, a, RDMA_CM_EVENT_ADDR_CHANGE);
    expect(s.a, prepared, RDMA_CM_EVENT_ADDR_CHANGE);
    run("ip addr add " ADDRESS "/24 dev v1"); /* the same change, seen later */
    cm_quiet(s.a, QUIET_MS);
    cm_quiet(s.b, 0);

    /* These are hints: what the ids have goes on as far as TCP does. */
    assert_int_equal(rdma_disconnect(a), 0);
    expect(s.a, a, RDMA_CM_EVENT_DISCONNECTED);
    expect(s.b, b, RDMA_CM_EVENT_DISCONNECTED);
    cm_drop(a);
    cm_drop(b);
    cm_drop(prepared);
    cm_close(&s);
    run("ip addr flush dev v0 && ip addr flush dev v1");
}

static void an_address_moves(void **state)
{
    struct cm_sides s;
    (void)state;
    run("ip addr add " ADDRESS "/24 dev v0");
    usleep(QUIET_MS * 1000); /* changes that come close to each other are one */
    cm_open(&s, ADDRESS);
    run("ip link set v0 address 02:00:00:00:00:77");
    expect(s.b, s.listener, RDMA_CM_EVENT_ADDR_CHANGE);
    cm_quiet(s.b, QUIET_MS);
    run("ip link del v0");
    expect(s.b, s.listener, RDMA_CM_EVENT_ADDR_CHANGE);
    cm_quiet(s.b, QUIET_MS);
    cm_close(&s);
}

static void a_wildcard_listener_hears_nothing(void **state)
{
    struct cm_sides s;
    (void)state;
    assert_true(set_up_host());
    run("ip addr add " ADDRESS "/24 dev v0");
    cm_open(&s, "0.0.0.0");
    run("ip link del v0");
    cm_quiet(s.b, QUIET_MS);
    cm_close(&s);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_taken_away),
        cmocka_unit_test(an_address_moves),
        cmocka_unit_test(a_wildcard_listener_hears_nothing),
    };
    return cmocka_run_group_tests_name("one device", tests, NULL, NULL);
}

/* ---- a device for one interface ---- */

static void an_interface_is_removed(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
    (void)state;
    for (int again = 0; again < 2; again++) {
        run("ip addr add " ADDRESS "/24 dev v0");
        cm_open(&s, ADDRESS);
        cm_connect(&s, &a, &b);
        run("ip link set v0 down"); /* it is still there */
        cm_quiet(s.a, QUIET_MS);
        run("ip link del v0");
        expect(s.b, s.listener, RDMA_CM_EVENT_DEVICE_REMOVAL);
        expect(s.b, b, RDMA_CM_EVENT_DEVICE_REMOVAL);
        expect(s.a, a, RDMA_CM_EVENT_DEVICE_REMOVAL);
        cm_quiet(s.a, QUIET_MS);
        cm_quiet(s.b, 0);
        cm_drop(a);
        cm_drop(b);
        cm_close(&s);
        assert_true(set_up_host());
    }
}

static int run_named(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_interface_is_removed)};
    setenv("ANYWARP_DEVICES", "v=v0", 1);
    return cmocka_run_group_tests_name("a device of its own", tests, NULL, NULL);
}

/* ---- */

static int run_again(const char *mode)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "cm_host_test", mode, (char *)NULL);
        _exit(99);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int main(int argc, char **argv)
{
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    if (argc > 1) {
        if (unshare(CLONE_NEWNET) || !set_up_host()) {
            print_message("no network namespace of its own: %s\n", strerror(errno));
            return SKIPPED;
        }
        return strcmp(argv[1], "named") == 0 ? run_named() : run_all();
    }
    int all = run_again("all"), named = run_again("named");
    return all ? all : named;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports: who has one, in a process and between processes. */
#include "cm_kit.h"
#include "cm_net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void each_port_has_its_listener(void **state)
{
    struct rdma_cm_id *listeners[4];
    (void)state;
    for (size_t i = 0; i < COUNT(listeners); i++)
        listeners[i] = cm_net_listener("10.77.0.1", false);
    for (size_t i = 0; i < COUNT(listeners); i++) {
        struct rdma_cm_id *a = cm_net_begin(NULL, "10.77.0.1", rdma_get_src_port(listeners[i]));
        struct rdma_cm_event *event = cm_next(cm_net_channel);
        assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
        assert_ptr_equal(event->listen_id, listeners[i]);
        struct rdma_cm_id *b = event->id;
        assert_int_equal(rdma_ack_cm_event(event), 0);
        assert_int_equal(rdma_destroy_id(b), 0);
        assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
        cm_drop(a);
    }
    for (size_t i = 0; i < COUNT(listeners); i++)
        assert_int_equal(rdma_destroy_id(listeners[i]), 0);
}

static void the_source_port_is_the_one_asked_for(void **state)
{
    (void)state;
    struct rdma_cm_id *listener = cm_net_listener("10.77.0.1", false), *a = cm_net_id();
    struct sockaddr_storage to = cm_net_address("10.77.0.1", rdma_get_src_port(listener));
    struct sockaddr_storage from = cm_net_address("10.77.1.1", htons(4711));
    assert_int_equal(rdma_resolve_addr(a, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000),
                     0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(a, 2000), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    cm_add_qp(a);

    /* Another id cannot have it now. */
    struct rdma_cm_id *other = cm_net_id();
    assert_int_equal(cm_net_bind(other, "10.77.1.1", htons(4711)), EADDRINUSE);
    assert_int_equal(rdma_destroy_id(other), 0);

    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_net_finish();
    cm_net_same(rdma_get_peer_addr(b), (struct sockaddr *)&from);
    cm_drop(a);
    cm_drop(b);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* ---- clashes of ports ---- */

enum { REUSE = 1, ONLY = 2 };

static const struct clash {
    const char *first;
    int first_options;
    const char *second;
    int second_options;
    int bind, listen; /* of the second; the first does not listen yet, but wants to */
} clashes[] = {
    {"127.0.0.1", 0, "127.0.0.1", 0, EADDRINUSE, 0},
    {"127.0.0.1", 0, "127.0.0.2", 0, 0, 0},
    {"0.0.0.0", 0, "127.0.0.1", 0, EADDRINUSE, 0},
    {"127.0.0.1", 0, "0.0.0.0", 0, EADDRINUSE, 0},
    {"127.0.0.1", REUSE, "127.0.0.1", 0, EADDRINUSE, 0},
    {"127.0.0.1", REUSE, "127.0.0.1", REUSE, 0, EADDRINUSE},
    {"0.0.0.0", REUSE, "127.0.0.1", REUSE, 0, EADDRINUSE},
    {"::1", 0, "127.0.0.1", 0, 0, 0},
    {"::", 0, "0.0.0.0", 0, EADDRINUSE, 0},
    {"0.0.0.0", 0, "::", 0, EADDRINUSE, 0},
    {"::", 0, "127.0.0.1", 0, EADDRINUSE, 0},
    {"::", ONLY, "0.0.0.0", 0, 0, 0},
    {"0.0.0.0", 0, "::", ONLY, 0, 0},
    {"::", ONLY, "::1", ONLY, EADDRINUSE, 0},
    {"fe80::70%v0", 0, "fe80::71%v1", 0, 0, 0},
};

static void set_options(struct rdma_cm_id *id, int options)
{
    if (options & REUSE)
        assert_int_equal(cm_net_set(id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
    if (options & ONLY)
        assert_int_equal(cm_net_set(id, RDMA_OPTION_ID_AFONLY, 1), 0);
}

static void two_ids_want_one_port(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(clashes); i++) {
        const struct clash *c = &clashes[i];
        struct rdma_cm_id *first = cm_net_id(), *second = cm_net_id();
        set_options(first, c->first_options);
        set_options(second, c->second_options);
        assert_int_equal(cm_net_bind(first, c->first, 0), 0);
        int err = cm_net_bind(second, c->second, rdma_get_src_port(first));
        if (err != c->bind)
            fail_msg("row %zu: bind: %s", i, strerror(err));
        err = err ? 0 : cm_net_listen(second);
        if (err != c->listen)
            fail_msg("row %zu: listen: %s", i, strerror(err));
        /* The first is not hurt; it has the port to itself when the second is gone. */
        if (c->bind || c->listen)
            assert_int_equal(rdma_destroy_id(second), 0);
        assert_int_equal(cm_net_listen(first), 0);
        assert_int_equal(cm_net_listen(first), EINVAL);
        if (!c->bind && !c->listen)
            assert_int_equal(rdma_destroy_id(second), 0);
        assert_int_equal(rdma_destroy_id(first), 0);
    }
}

/* Runs this program again as one that listens. @return its port, network order */
static uint16_t other_process(const char *address, pid_t *pid, int *hold)
{
    int in[2], out[2];
    uint16_t port = 0;
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    *pid = fork();
    if (*pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 3);
        close(in[1]);
        execl("/proc/self/exe", "cm_port_test", "hold", address, (char *)NULL);
        _exit(99);
    }
    close(in[0]);
    close(out[1]);
    assert_int_equal(read(out[0], &port, sizeof(port)), sizeof(port));
    close(out[0]);
    *hold = in[1];
    return port;
}

/* That other process: tells the port on descriptor 3, goes on until its input is closed. */
static int hold(const char *address)
{
    char c;
    cm_net_open(NULL);
    struct rdma_cm_id *id = cm_net_listener(address, false);
    uint16_t port = rdma_get_src_port(id);
    if (write(3, &port, sizeof(port)) != sizeof(port))
        return 1;
    while (read(0, &c, 1) > 0) {
    }
    rdma_destroy_id(id);
    cm_net_close(NULL);
    return 0;
}

static void two_processes_want_one_port(void **state)
{
    static const struct {
        const char *theirs, *ours;
        int reuse, err;
    } rows[] = {
        {"127.0.0.1", "127.0.0.1", 0, EADDRINUSE},
        {"127.0.0.1", "127.0.0.1", REUSE, EADDRINUSE},
        {"0.0.0.0", "127.0.0.1", 0, EADDRINUSE},
        {"127.0.0.1", "0.0.0.0", 0, EADDRINUSE},
        {"::", "127.0.0.1", 0, EADDRINUSE},
        {"127.0.0.1", "127.0.0.2", 0, 0},
        {"127.0.0.1", "::1", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        pid_t pid;
        int release, status;
        uint16_t port = other_process(rows[i].theirs, &pid, &release);
        struct rdma_cm_id *id = cm_net_id();
        set_options(id, rows[i].reuse);
        int err = cm_net_bind(id, rows[i].ours, port);
        if (!err)
            err = cm_net_listen(id);
        if (err != rows[i].err)
            fail_msg("row %zu: %s", i, strerror(err));
        close(release);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(rdma_destroy_id(id), 0);
        if (err) { /* it is free now */
            id = cm_net_id();
            assert_int_equal(cm_net_bind(id, rows[i].ours, port), 0);
            assert_int_equal(cm_net_listen(id), 0);
            assert_int_equal(rdma_destroy_id(id), 0);
        }
    }
}

/* As a server that is started again while clients of its former life are there. */
static void a_port_whose_connections_live(void **state)
{
    (void)state;
    struct rdma_cm_id *listener = cm_net_listener("::", false);
    uint16_t port = rdma_get_src_port(listener);
    struct rdma_cm_id *a = cm_net_begin(NULL, "10.77.0.1", port), *b = cm_net_finish();
    assert_int_equal(rdma_destroy_id(listener), 0);
    static const char *const again[] = {"::", "0.0.0.0", "10.77.0.1"};
    for (size_t i = 0; i < COUNT(again); i++) {
        listener = cm_net_id();
        assert_int_equal(cm_net_bind(listener, again[i], port), 0);
        assert_int_equal(cm_net_listen(listener), 0);
        struct rdma_cm_id *c = cm_net_begin(NULL, "10.77.0.1", port), *d = cm_net_finish();
        cm_drop(c);
        cm_drop(d);
        assert_int_equal(rdma_destroy_id(listener), 0);
    }
    cm_net_send(a, b);
    cm_drop(a);
    cm_drop(b);
}

static int run_ports(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_port_has_its_listener),
        cmocka_unit_test(the_source_port_is_the_one_asked_for),
        cmocka_unit_test(two_ids_want_one_port),
        cmocka_unit_test(two_processes_want_one_port),
        cmocka_unit_test(a_port_whose_connections_live),
    };
    return cmocka_run_group_tests_name("ports", tests, cm_net_open, cm_net_close);
}

int main(int argc, char **argv)
{
    static const struct cm_net_mode modes[] = {{"ports", NULL, NULL, run_ports}};
    if (argc == 3 && strcmp(argv[1], "hold") == 0)
        return hold(argv[2]);
    return cm_net_main(argc, argv, modes, COUNT(modes));
}

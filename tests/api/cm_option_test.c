/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_set_option(): sizes, and what an option does to the socket of a connection. */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static struct rdma_event_channel *channel;

static int setup(void **unused)
{
    (void)unused;
    channel = rdma_create_event_channel();
    return channel ? 0 : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_event_channel(channel);
    return 0;
}

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, ps), 0);
    return id;
}

static int set_int(struct rdma_cm_id *id, int option, int value)
{
    return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof value);
}

static int set_byte(struct rdma_cm_id *id, int option, uint8_t value)
{
    return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof value);
}

static void only_the_right_size(void **unused)
{
    (void)unused;
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 71, 72, 144};
    static const struct {
        int level, option;
        size_t size; /* the right one; 0: there is no such option */
    } options[] = {
        {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4},
        {RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1},
        {RDMA_OPTION_ID, 4, 0},
        {RDMA_OPTION_ID, -1, 0},
        {RDMA_OPTION_IB, 0, 0},
        {RDMA_OPTION_IB, 2, 0},
        {2, RDMA_OPTION_ID_TOS, 0},
        {-1, RDMA_OPTION_ID_TOS, 0},
    };
    char value[144] = {1};
    for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            int want = sizes[s] == options[o].size ? 0 : EINVAL;
            if (!options[o].size)
                want = ENOSYS;
            struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
            errno = 0;
            int r = rdma_set_option(id, options[o].level, options[o].option, value, sizes[s]);
            if (r != (want ? -1 : 0) || errno != want)
                fail_msg("level %d, option %d, %zu bytes: %d, errno %d", options[o].level,
                         options[o].option, sizes[s], r, errno);
            rdma_destroy_id(id);
        }
    }
}

/* An array of paths is a route if one of them can be used. */
static void paths(void **unused)
{
    (void)unused;
    const uint32_t usable = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
    static const struct {
        size_t size;
        bool first, second;
        int result;
    } cases[] = {
        {0, true, true, -1},   {71, true, true, -1},  {73, true, true, -1},
        {143, true, true, -1}, {72, false, true, -1}, {144, false, false, -1},
        {72, true, false, 0},  {144, true, false, 0}, {144, false, true, 0},
    };
    struct side side = {.events = channel};
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(9)};
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ibv_path_data path[3] = {{.flags = 0}};
        path[0].flags = cases[i].first ? usable : IBV_PATH_FLAG_GMP;
        path[1].flags = cases[i].second ? usable | IBV_PATH_FLAG_ALTERNATE : 0;
        struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
        assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 100), 0);
        side_event(&side, RDMA_CM_EVENT_ADDR_RESOLVED);
        errno = 0;
        assert_int_equal(
            rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, cases[i].size),
            cases[i].result);
        assert_int_equal(errno, cases[i].result ? EINVAL : 0);
        if (cases[i].result == 0)
            side_event(&side, RDMA_CM_EVENT_ROUTE_RESOLVED);
        rdma_destroy_id(id);
    }
}

static void the_ack_timeout_is_for_connections(void **unused)
{
    (void)unused;
    struct rdma_cm_id *id = new_id(RDMA_PS_UDP);
    assert_int_equal(set_byte(id, RDMA_OPTION_ID_ACK_TIMEOUT, 14), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_id(id);
    id = new_id(RDMA_PS_IB);
    assert_int_equal(set_byte(id, RDMA_OPTION_ID_ACK_TIMEOUT, 14), 0);
    rdma_destroy_id(id);
}

/* ---- binding ---- */

static int bind_to(struct rdma_cm_id *id, sa_family_t family, __be16 port)
{
    struct sockaddr_storage any = {.ss_family = family};
    ((struct sockaddr_in *)&any)->sin_port = port; /* sin6_port has the same place */
    return rdma_bind_addr(id, (struct sockaddr *)&any);
}

static bool has_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&loopback, sizeof loopback);
    if (fd >= 0)
        close(fd);
    return has;
}

static void afonly_leaves_ipv4_to_others(void **unused)
{
    (void)unused;
    if (!has_ipv6())
        skip();
    for (int only = 0; only < 2; only++) {
        struct rdma_cm_id *six = new_id(RDMA_PS_TCP), *four = new_id(RDMA_PS_TCP);
        assert_int_equal(set_int(six, RDMA_OPTION_ID_AFONLY, only), 0);
        assert_int_equal(bind_to(six, AF_INET6, 0), 0);
        assert_int_equal(rdma_listen(six, 1), 0);
        int r = bind_to(four, AF_INET, rdma_get_src_port(six));
        assert_int_equal(r, only ? 0 : -1);
        if (only)
            assert_int_equal(rdma_listen(four, 1), 0);
        else
            assert_int_equal(errno, EADDRINUSE);
        rdma_destroy_id(six);
        rdma_destroy_id(four);
    }
}

static void reuseaddr_shares_a_port(void **unused)
{
    (void)unused;
    for (int shared = 0; shared < 2; shared++) {
        struct rdma_cm_id *a = new_id(RDMA_PS_TCP), *b = new_id(RDMA_PS_TCP);
        assert_int_equal(set_int(a, RDMA_OPTION_ID_REUSEADDR, shared), 0);
        assert_int_equal(set_int(b, RDMA_OPTION_ID_REUSEADDR, 1), 0);
        assert_int_equal(bind_to(a, AF_INET, 0), 0);
        int r = bind_to(b, AF_INET, rdma_get_src_port(a));
        assert_int_equal(r, shared ? 0 : -1);
        if (!shared)
            assert_int_equal(errno, EADDRINUSE);
        rdma_destroy_id(a);
        rdma_destroy_id(b);
    }
}

/* ---- type of service ---- */

/* The type of service of the one socket of this process that has the id's two addresses. */
static int tos_of(struct rdma_cm_id *id)
{
    struct rlimit limit;
    int found = 0, tos = -1;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 0; fd < (int)limit.rlim_cur && fd < 65536; fd++) {
        struct sockaddr_storage local, peer;
        socklen_t local_len = sizeof local, peer_len = sizeof peer, len = sizeof tos;
        /* sin_port and sin6_port have the same place */
        if (getsockname(fd, (struct sockaddr *)&local, &local_len) ||
            getpeername(fd, (struct sockaddr *)&peer, &peer_len) ||
            ((struct sockaddr_in *)&local)->sin_port != rdma_get_src_port(id) ||
            ((struct sockaddr_in *)&peer)->sin_port != rdma_get_dst_port(id))
            continue;
        struct in6_addr *v6 = &((struct sockaddr_in6 *)&local)->sin6_addr;
        if (local.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(v6))
            assert_int_equal(getsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, &len), 0);
        else
            assert_int_equal(getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &len), 0);
        found++;
    }
    assert_int_equal(found, 1);
    return tos;
}

/* When an id gets its option. */
enum when { NEVER, NEW, BOUND, RESOLVED, CONNECTED };

static void tos_at(struct rdma_cm_id *id, enum when when, enum when now, uint8_t tos)
{
    if (when == now)
        assert_int_equal(set_byte(id, RDMA_OPTION_ID_TOS, tos), 0);
}

static struct sockaddr_storage loopback(sa_family_t family, __be16 port)
{
    struct sockaddr_storage addr = {.ss_family = family};
    ((struct sockaddr_in *)&addr)->sin_port = port;
    if (family == AF_INET)
        ((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&addr)->sin6_addr = in6addr_loopback;
    return addr;
}

static struct ibv_qp *create_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    return id->qp;
}

struct tos_case {
    sa_family_t listener, client;
    enum when listener_sets, client_sets, server_sets;
    int client_tos, server_tos; /* on the sockets in the end */
};

#define OF_LISTENER 0x10
#define OF_CLIENT   0x20
#define OF_SERVER   0x48

static void connect_with_tos(const struct tos_case *c)
{
    struct side listening = {.events = rdma_create_event_channel()}, active = {.events = channel};
    struct sockaddr_storage any = {.ss_family = c->listener}, to;
    struct rdma_conn_param param = {.initiator_depth = 1};
    struct rdma_cm_event *event;
    struct rdma_cm_id *listener, *client = new_id(RDMA_PS_TCP);
    assert_non_null(listening.events);
    assert_int_equal(rdma_create_id(listening.events, &listener, NULL, RDMA_PS_TCP), 0);
    tos_at(listener, c->listener_sets, NEW, OF_LISTENER);
    assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&any), 0);
    tos_at(listener, c->listener_sets, BOUND, OF_LISTENER);
    assert_int_equal(rdma_listen(listener, 1), 0);
    tos_at(listener, c->listener_sets, CONNECTED, OF_LISTENER);

    to = loopback(c->client, rdma_get_src_port(listener));
    tos_at(client, c->client_sets, NEW, OF_CLIENT);
    assert_int_equal(rdma_resolve_addr(client, NULL, (struct sockaddr *)&to, 100), 0);
    side_event(&active, RDMA_CM_EVENT_ADDR_RESOLVED);
    tos_at(client, c->client_sets, RESOLVED, OF_CLIENT);
    assert_int_equal(rdma_resolve_route(client, 100), 0);
    side_event(&active, RDMA_CM_EVENT_ROUTE_RESOLVED);
    create_qp(client);
    assert_int_equal(rdma_connect(client, &param), 0);

    assert_int_equal(rdma_get_cm_event(listening.events, &event), 0);
    assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    rdma_ack_cm_event(event);
    tos_at(server, c->server_sets, NEW, OF_SERVER);
    create_qp(server);
    assert_int_equal(rdma_accept(server, NULL), 0);
    side_event(&active, RDMA_CM_EVENT_ESTABLISHED);
    side_event(&listening, RDMA_CM_EVENT_ESTABLISHED);
    tos_at(client, c->client_sets, CONNECTED, OF_CLIENT);
    tos_at(server, c->server_sets, CONNECTED, OF_SERVER);

    assert_int_equal(tos_of(client), c->client_tos);
    assert_int_equal(tos_of(server), c->server_tos);

    rdma_destroy_qp(client);
    rdma_destroy_qp(server);
    rdma_destroy_id(client);
    rdma_destroy_id(server);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(listening.events);
}

static void tos_is_that_of_the_socket(void **unused)
{
    (void)unused;
    static const struct tos_case cases[] = {
        {AF_INET, AF_INET, NEVER, NEVER, NEVER, 0, 0},
        {AF_INET, AF_INET, NEVER, NEW, NEVER, OF_CLIENT, 0},
        {AF_INET, AF_INET, NEVER, RESOLVED, NEVER, OF_CLIENT, 0},
        {AF_INET, AF_INET, NEVER, CONNECTED, NEVER, OF_CLIENT, 0},
        {AF_INET, AF_INET, NEW, NEVER, NEVER, 0, OF_LISTENER},
        {AF_INET, AF_INET, BOUND, NEVER, NEVER, 0, OF_LISTENER},
        {AF_INET, AF_INET, CONNECTED, NEVER, NEVER, 0, OF_LISTENER},
        {AF_INET, AF_INET, NEVER, NEVER, NEW, 0, OF_SERVER},
        {AF_INET, AF_INET, NEW, NEW, NEW, OF_CLIENT, OF_SERVER},
        {AF_INET, AF_INET, NEW, NEVER, CONNECTED, 0, OF_SERVER},
        {AF_INET6, AF_INET6, NEW, NEW, NEVER, OF_CLIENT, OF_LISTENER},
        {AF_INET6, AF_INET6, NEVER, CONNECTED, CONNECTED, OF_CLIENT, OF_SERVER},
        {AF_INET6, AF_INET, NEW, NEW, NEVER, OF_CLIENT, OF_LISTENER},
        {AF_INET6, AF_INET, NEVER, NEVER, NEW, 0, OF_SERVER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].listener == AF_INET6 && !has_ipv6())
            continue;
        print_message("case %zu\n", i);
        connect_with_tos(&cases[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_right_size),
        cmocka_unit_test(paths),
        cmocka_unit_test(the_ack_timeout_is_for_connections),
        cmocka_unit_test(afonly_leaves_ipv4_to_others),
        cmocka_unit_test(reuseaddr_shares_a_port),
        cmocka_unit_test(tos_is_that_of_the_socket),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

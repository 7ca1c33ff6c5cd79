/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call that takes an id, in every state of it: what it returns and errno. What is expected
 * is written down here, cell by cell: it is what programs for rdma-core and an iWARP adapter rely
 * on.
 */
#include "cm_states.h"

#include <rdma/rdma_verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- the calls ---- */

static struct world w;
static struct rdma_event_channel *other_channel;

static struct rdma_conn_param conn(void)
{
    return (struct rdma_conn_param){.qp_num = w.qp->qp_num};
}

static struct ibv_qp_init_attr_ex qp_attr(void)
{
    return (struct ibv_qp_init_attr_ex){
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
}

static int set(int level, int name, const void *val, size_t len)
{
    return rdma_set_option(w.id, level, name, (void *)(uintptr_t)val, len);
}

static int set_int(int name, int value)
{
    return set(RDMA_OPTION_ID, name, &value, sizeof value);
}

static int set_byte(int name, uint8_t value)
{
    return set(RDMA_OPTION_ID, name, &value, sizeof value);
}

static int init_attr(enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask;
    return rdma_init_qp_attr(w.id, &attr, &mask);
}

static int bind_addr(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    return rdma_bind_addr(w.id, (struct sockaddr *)&any);
}

static int resolve_addr(void)
{
    return rdma_resolve_addr(w.id, NULL, world_address(&w), 1000);
}

static int resolve_route(void)
{
    return rdma_resolve_route(w.id, 1000);
}

static int listen_(void)
{
    return rdma_listen(w.id, 1);
}

static int get_request(void)
{
    struct rdma_cm_id *request;
    return rdma_get_request(w.id, &request);
}

static int connect_(void)
{
    struct rdma_conn_param param = conn();
    return rdma_connect(w.id, &param);
}

static int connect_without(void)
{
    return rdma_connect(w.id, NULL);
}

static int accept_(void)
{
    struct rdma_conn_param param = conn();
    return rdma_accept(w.id, &param);
}

static int accept_without(void)
{
    return rdma_accept(w.id, NULL);
}

static int reject(void)
{
    return rdma_reject(w.id, NULL, 0);
}

static int reject_ece(void)
{
    return rdma_reject_ece(w.id, NULL, 0);
}

static int disconnect(void)
{
    return rdma_disconnect(w.id);
}

static int establish(void)
{
    return rdma_establish(w.id);
}

static int notify(void)
{
    return rdma_notify(w.id, IBV_EVENT_COMM_EST);
}

static int create_qp(void)
{
    struct ibv_qp_init_attr_ex ex = qp_attr();
    struct ibv_qp_init_attr attr;
    memcpy(&attr, &ex, sizeof attr);
    return rdma_create_qp(w.id, NULL, &attr);
}

static int create_qp_ex(void)
{
    struct ibv_qp_init_attr_ex attr = qp_attr();
    return rdma_create_qp_ex(w.id, &attr);
}

static int destroy_qp(void)
{
    rdma_destroy_qp(w.id);
    return 0;
}

static int create_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
    return rdma_create_srq(w.id, NULL, &attr);
}

static int create_srq_ex(void)
{
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 1, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
                                        .srq_type = IBV_SRQT_BASIC};
    return rdma_create_srq_ex(w.id, &attr);
}

static int destroy_srq(void)
{
    rdma_destroy_srq(w.id);
    return 0;
}

static int init_attr_init(void)
{
    return init_attr(IBV_QPS_INIT);
}

static int init_attr_sqd(void)
{
    return init_attr(IBV_QPS_SQD);
}

static int init_attr_unknown(void)
{
    return init_attr(IBV_QPS_UNKNOWN);
}

static int set_tos(void)
{
    return set_byte(RDMA_OPTION_ID_TOS, 0x20);
}

static int set_reuseaddr(void)
{
    return set_int(RDMA_OPTION_ID_REUSEADDR, 1);
}

static int clear_reuseaddr(void)
{
    return set_int(RDMA_OPTION_ID_REUSEADDR, 0);
}

static int set_afonly(void)
{
    return set_int(RDMA_OPTION_ID_AFONLY, 1);
}

static int set_ack_timeout(void)
{
    return set_byte(RDMA_OPTION_ID_ACK_TIMEOUT, 14);
}

static int set_path(void)
{
    struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
                                          IBV_PATH_FLAG_BIDIRECTIONAL};
    return set(RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof path);
}

static int set_unknown(void)
{
    return set_int(99, 1);
}

static int set_local_ece(void)
{
    struct ibv_ece ece = {.vendor_id = 1};
    return rdma_set_local_ece(w.id, &ece);
}

static int get_remote_ece(void)
{
    struct ibv_ece ece;
    return rdma_get_remote_ece(w.id, &ece);
}

static int join_multicast(void)
{
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000105)};
    return rdma_join_multicast(w.id, (struct sockaddr *)&group, NULL);
}

static int join_multicast_ex(void)
{
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000105)};
    struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
                                           .addr = (struct sockaddr *)&group};
    return rdma_join_multicast_ex(w.id, &attr, NULL);
}

static int leave_multicast(void)
{
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000105)};
    return rdma_leave_multicast(w.id, (struct sockaddr *)&group);
}

static int migrate_id(void)
{
    return rdma_migrate_id(w.id, other_channel);
}

static int destroy_id(void)
{
    return rdma_destroy_id(w.id);
}

static int destroy_ep(void)
{
    rdma_destroy_ep(w.id);
    return 0;
}

/* ---- what is expected: 0, or -1 and this errno ---- */

#define I   EINVAL
#define S   ENOSYS
#define A   EADDRNOTAVAIL
#define NOT (-1) /* not called: it would wait for what this thread is to do */

/* clang-format off */
static const struct {
    const char *name;
    int (*call)(void);
    int expected[STATE_COUNT];
    bool ends; /* success is the end of the id */
} calls[] = {
    /*  IDLE, ANY, BOUND, RESOLVING, RESOLVED, ROUTED, LISTENING_ANY, LISTENING, REQUESTED,
        CONNECTING, ESTABLISHED, DISCONNECTING, DISCONNECTED, REJECTING, REJECTED, DESTROYING */
    {"bind_addr",         bind_addr,         {0, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"resolve_addr",      resolve_addr,      {0, 0, 0, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"resolve_route",     resolve_route,     {I, I, I, 0, 0, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"listen",            listen_,           {0, 0, 0, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"get_request",       get_request,       {I, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"connect",           connect_,          {I, I, I, I, I, 0, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"connect, no QP",    connect_without,   {I, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"accept",            accept_,           {I, I, I, I, I, I, I, I, 0,  I, I, I, I, I, I, I}, 0},
    {"accept, no QP",     accept_without,    {I, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"reject",            reject,            {I, I, I, I, I, I, I, I, 0,  I, I, I, I, I, I, I}, 0},
    {"reject_ece",        reject_ece,        {I, I, I, I, I, I, I, I, 0,  I, I, I, I, I, I, I}, 0},
    {"disconnect",        disconnect,        {I, I, I, I, I, I, I, I, 0,  0, 0, 0, 0, 0, 0, I}, 0},
    {"establish",         establish,         {I, I, I, I, I, I, I, I, I,  I, 0, I, I, I, I, I}, 0},
    {"notify",            notify,            {I, I, I, I, I, I, I, I, 0,  0, 0, 0, 0, 0, 0, I}, 0},
    {"create_qp",         create_qp,         {I, I, 0, I, 0, 0, I, 0, 0,  0, 0, I, I, I, I, I}, 0},
    {"create_qp_ex",      create_qp_ex,      {I, I, 0, I, 0, 0, I, 0, 0,  0, 0, I, I, I, I, I}, 0},
    {"destroy_qp",        destroy_qp,        {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0}, 0},
    {"create_srq",        create_srq,        {I, I, 0, I, 0, 0, I, 0, 0,  0, 0, 0, 0, 0, 0, I}, 0},
    {"create_srq_ex",     create_srq_ex,     {I, I, 0, I, 0, 0, I, 0, 0,  0, 0, 0, 0, 0, 0, I}, 0},
    {"destroy_srq",       destroy_srq,       {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0}, 0},
    {"init_qp_attr INIT", init_attr_init,    {I, I, 0, I, 0, 0, I, 0, 0,  0, 0, I, I, I, I, I}, 0},
    {"init_qp_attr SQD",  init_attr_sqd,     {I, I, 0, I, 0, 0, I, 0, I,  I, I, I, I, I, I, I}, 0},
    {"init_qp_attr UNKNOWN", init_attr_unknown, {I, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"TOS",               set_tos,           {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, I}, 0},
    {"REUSEADDR",         set_reuseaddr,     {0, 0, 0, 0, 0, 0, I, I, 0,  0, 0, 0, 0, 0, 0, I}, 0},
    {"REUSEADDR off",     clear_reuseaddr,   {0, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"AFONLY",            set_afonly,        {0, 0, 0, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"ACK_TIMEOUT",       set_ack_timeout,   {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, I}, 0},
    {"IB_PATH",           set_path,          {I, I, I, 0, 0, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"unknown option",    set_unknown,       {S, S, S, S, S, S, S, S, S,  S, S, S, S, S, S, S}, 0},
    {"set_local_ece",     set_local_ece,     {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0}, 0},
    {"get_remote_ece",    get_remote_ece,    {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0}, 0},
    {"join_multicast",    join_multicast,    {I, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"join_multicast_ex", join_multicast_ex, {I, I, I, I, I, I, I, I, I,  I, I, I, I, I, I, I}, 0},
    {"leave_multicast",   leave_multicast,   {A, A, A, A, A, A, A, A, A,  A, A, A, A, A, A, I}, 0},
    {"migrate_id",        migrate_id,        {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, NOT}, 0},
    {"destroy_id",        destroy_id,        {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, I}, 1},
    {"destroy_ep",        destroy_ep,        {0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0}, 1},
};
/* clang-format on */

static void every_call_in_every_state(void **unused)
{
    (void)unused;
    int wrong = 0;
    other_channel = rdma_create_event_channel();
    assert_non_null(other_channel);
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        for (int s = 0; s < STATE_COUNT; s++) {
            int want = calls[c].expected[s];
            if (want == NOT)
                continue;
            world_open(&w, (enum state)s);
            errno = 0;
            int result = calls[c].call();
            int err = result ? errno : 0;
            if (err != want || result != (want ? -1 : 0)) {
                print_error("%s in %s: %d, errno %s; wanted %s\n", calls[c].name,
                            state_name((enum state)s), result, strerror(err), strerror(want));
                wrong++;
            }
            world_close(&w, calls[c].ends && result == 0);
        }
    }
    rdma_destroy_event_channel(other_channel);
    assert_int_equal(wrong, 0);
}

/* ---- rdma_init_qp_attr() ---- */

static void masks_and_access_flags(void **unused)
{
    (void)unused;
    const int full = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT;
    const int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    const struct {
        enum state state;
        enum ibv_qp_state to;
        int mask, access;
    } cases[] = {
        {BOUND, IBV_QPS_INIT, full, 0},
        {RESOLVED, IBV_QPS_RTR, full, 0},
        {ROUTED, IBV_QPS_RTS, full, 0},
        {ROUTED, IBV_QPS_ERR, full, 0},
        {REQUESTED, IBV_QPS_INIT, full, remote},
        {REQUESTED, IBV_QPS_RTR, full, remote},
        {REQUESTED, IBV_QPS_RTS, IBV_QP_PORT, 0},
        {CONNECTING, IBV_QPS_INIT, full, remote},
        {CONNECTING, IBV_QPS_RTR, full, remote},
        {CONNECTING, IBV_QPS_RTS, IBV_QP_PORT, 0},
        {ESTABLISHED, IBV_QPS_INIT, full, remote},
        {ESTABLISHED, IBV_QPS_RTR, full, remote},
        {ESTABLISHED, IBV_QPS_RTS, IBV_QP_PORT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ibv_qp_attr attr, want = {.qp_state = cases[i].to, .port_num = 1};
        int mask = 0;
        memset(&attr, 0x5a, sizeof attr);
        attr.qp_state = cases[i].to;
        want.qp_access_flags = (unsigned)cases[i].access;
        world_open(&w, cases[i].state);
        assert_int_equal(rdma_init_qp_attr(w.id, &attr, &mask), 0);
        assert_int_equal(mask, cases[i].mask);
        assert_memory_equal(&attr, &want, sizeof attr);
        world_close(&w, false);
    }
}

/* ---- addresses ---- */

static void addresses_and_ports(void **unused)
{
    (void)unused;
    /* whether the id knows its own port, and its own and the peer's address */
    static const struct {
        enum state state;
        bool local, peer;
    } cases[] = {
        {IDLE, 0, 0},        {ANY, 1, 0},           {BOUND, 1, 0},      {RESOLVING, 0, 1},
        {RESOLVED, 1, 1},    {ROUTED, 1, 1},        {LISTENING, 1, 0},  {LISTENING_ANY, 1, 0},
        {REQUESTED, 1, 1},   {CONNECTING, 1, 1},    {REJECTING, 1, 1},  {REJECTED, 1, 1},
        {ESTABLISHED, 1, 1}, {DISCONNECTING, 1, 1}, {DESTROYING, 1, 1}, {DISCONNECTED, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world_open(&w, cases[i].state);
        const struct sockaddr_in *local = (void *)rdma_get_local_addr(w.id);
        const struct sockaddr_in *peer = (void *)rdma_get_peer_addr(w.id);
        if ((local->sin_family == AF_INET) != cases[i].local ||
            (peer->sin_family == AF_INET) != cases[i].peer)
            fail_msg("%s: families %d and %d", state_name(cases[i].state), local->sin_family,
                     peer->sin_family);
        assert_int_equal(rdma_get_src_port(w.id), local->sin_port);
        assert_int_equal(rdma_get_dst_port(w.id), peer->sin_port);
        assert_int_equal(rdma_get_src_port(w.id) != 0, cases[i].local);
        if (cases[i].peer && w.id != w.peer && peer->sin_port != local->sin_port)
            assert_int_equal(peer->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        /* A connection has the same two ports on both sides. */
        if (w.peer) {
            assert_int_equal(rdma_get_src_port(w.id), rdma_get_dst_port(w.peer));
            assert_int_equal(rdma_get_dst_port(w.id), rdma_get_src_port(w.peer));
        }
        world_close(&w, false);
    }
    assert_int_equal(sizeof cases / sizeof cases[0], STATE_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_in_every_state),
        cmocka_unit_test(masks_and_access_flags),
        cmocka_unit_test(addresses_and_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

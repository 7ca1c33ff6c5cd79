/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection, its data, its events and its end, by commands alone. */
#include "api/uverbs_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Of enum rdma_cm_event_type, whose header has the names of the commands' own. */
enum { ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, ESTABLISHED = 9, DISCONNECTED };

/* One end: a device, and a channel of rdma_cm with an id. */
struct end {
    struct uv_world uv;
    int cm;
    uint32_t id;
};

/* A command of rdma_cm, with room for a response of @p out bytes. */
static int cm_send(int fd, uint32_t number, const void *bytes, size_t in, size_t out)
{
    uint64_t buffer[64] = {0};
    struct rdma_ucm_cmd_hdr hdr = {number, (uint16_t)in, (uint16_t)out};
    assert_true(in + sizeof hdr <= sizeof buffer);
    memcpy(buffer, &hdr, sizeof hdr);
    memcpy((uint8_t *)buffer + sizeof hdr, bytes, in);
    errno = 0;
    ssize_t n = anywarp_uverbs_write(fd, buffer, in + sizeof hdr);
    assert_true(n == (ssize_t)(in + sizeof hdr) || n == -1);

    return n < 0 ? errno : 0;
}

static void make_id(struct end *e, uint64_t uid)
{
    struct rdma_ucm_create_id_resp resp;
    struct rdma_ucm_create_id make = {.uid = uid, .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP};
    make.qp_type = IBV_QPT_RC;
    e->cm = anywarp_ucm_open();
    assert_true(e->cm >= 0);
    assert_int_equal(cm_send(e->cm, RDMA_USER_CM_CMD_CREATE_ID, &make, sizeof make, sizeof resp),
                     0);
    e->id = resp.id;
}

static struct rdma_ucm_event_resp event_of(struct end *e, uint32_t type, uint64_t uid)
{
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_get_event get = {.response = (uintptr_t)&event};
    assert_int_equal(cm_send(e->cm, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof get, sizeof event), 0);
    assert_int_equal(event.event, type);
    assert_int_equal(event.status, 0);
    assert_true(event.uid == uid);
    return event;
}

/* @return the address that the listener got */
static struct sockaddr_in listen_at(struct end *e)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET};
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct rdma_ucm_bind_ip bind = {.id = e->id};
    memcpy(&bind.addr, &loopback, sizeof loopback);
    assert_int_equal(cm_send(e->cm, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof bind, 0), 0);
    struct rdma_ucm_listen listen = {.id = e->id, .backlog = 1};
    assert_int_equal(cm_send(e->cm, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof listen, 0), 0);

    struct rdma_ucm_query_route_resp route;
    struct rdma_ucm_query query = {.response = (uintptr_t)&route, .id = e->id};
    assert_int_equal(
        cm_send(e->cm, RDMA_USER_CM_CMD_QUERY_ROUTE, &query, sizeof query, sizeof route), 0);
    memcpy(&loopback, &route.src_addr, sizeof loopback);
    assert_int_not_equal(loopback.sin_port, 0);
    return loopback;
}

static void resolve(struct end *e, const struct sockaddr_in *to, uint64_t uid)
{
    struct rdma_ucm_resolve_ip address = {.id = e->id, .timeout_ms = 5000};
    memcpy(&address.dst_addr, to, sizeof *to);
    assert_int_equal(cm_send(e->cm, RDMA_USER_CM_CMD_RESOLVE_IP, &address, sizeof address, 0), 0);
    event_of(e, ADDR_RESOLVED, uid);
    struct rdma_ucm_resolve_route route = {.id = e->id, .timeout_ms = 5000};
    assert_int_equal(cm_send(e->cm, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof route, 0), 0);
    event_of(e, ROUTE_RESOLVED, uid);
}

static struct rdma_ucm_conn_param param_of(const struct end *e, const char *said)
{
    struct rdma_ucm_conn_param p = {
        .qp_num = e->uv.qpn, .responder_resources = 1, .initiator_depth = 1, .valid = 1};
    p.private_data_len = (uint8_t)strlen(said);
    memcpy(p.private_data, said, p.private_data_len);
    return p;
}

static void connect_ends(struct end *server, struct end *client)
{
    make_id(server, 1);
    make_id(client, 2);
    struct sockaddr_in at = listen_at(server);
    resolve(client, &at, 2);
    struct rdma_ucm_connect connect = {.conn_param = param_of(client, "question"),
                                       .id = client->id};
    assert_int_equal(cm_send(client->cm, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof connect, 0), 0);

    struct rdma_ucm_event_resp request = event_of(server, CONNECT_REQUEST, 1);
    assert_int_not_equal(request.id, server->id);
    assert_memory_equal(request.param.conn.private_data, "question", 8);
    struct rdma_ucm_accept accept = {
        .uid = 3, .conn_param = param_of(server, "answer"), .id = request.id};
    assert_int_equal(cm_send(server->cm, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof accept, 0), 0);
    event_of(server, ESTABLISHED, 3);
    struct rdma_ucm_event_resp answer = event_of(client, ESTABLISHED, 2);
    assert_memory_equal(answer.param.conn.private_data, "answer", 6);

    /* The listener has done its work. */
    struct rdma_ucm_destroy_id_resp events;
    struct rdma_ucm_destroy_id destroy = {.response = (uintptr_t)&events, .id = server->id};
    assert_int_equal(
        cm_send(server->cm, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof destroy, sizeof events),
        0);
    assert_int_equal(events.events_reported, 1);
    server->id = request.id;
}

static void completed(struct end *e, uint64_t wr_id, uint32_t opcode)
{
    struct ib_uverbs_wc wc;
    while (!uv_poll(&e->uv, &wc))
        continue; /* an alarm ends what never comes */
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.qp_num, e->uv.qpn);
}

static void sends_writes_and_reads(struct end *server, struct end *client)
{
    uint64_t *here = client->uv.memory, *there = server->uv.memory;
    here[0] = 0x1111;
    struct ib_uverbs_send_wr wr = {.wr_id = 10, .opcode = IBV_WR_SEND};
    assert_int_equal(uv_post_recv(&server->uv, 20, 8), 0);
    assert_int_equal(uv_post_send(&client->uv, &wr, 8), 0);
    completed(client, 10, IBV_WC_SEND);
    completed(server, 20, IBV_WC_RECV);
    assert_true(there[0] == 0x1111);

    here[0] = 0x2222;
    wr = (struct ib_uverbs_send_wr){.wr_id = 11, .opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = (uintptr_t)&there[4];
    wr.wr.rdma.rkey = server->uv.rkey;
    assert_int_equal(uv_post_send(&client->uv, &wr, 8), 0);
    completed(client, 11, IBV_WC_RDMA_WRITE);

    wr.wr_id = 12;
    wr.opcode = IBV_WR_RDMA_READ;
    here[0] = 0;
    assert_int_equal(uv_post_send(&client->uv, &wr, 8), 0);
    completed(client, 12, IBV_WC_RDMA_READ);
    assert_true(here[0] == 0x2222 && there[4] == 0x2222);

    wr = (struct ib_uverbs_send_wr){
        .wr_id = 13, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    assert_int_equal(uv_post_recv(&server->uv, 23, 16), 0);
    here[0] = 0x3333;
    assert_int_equal(uv_post_send(&client->uv, &wr, 16), 0);
    here[0] = 0; /* which has been read */
    completed(client, 13, IBV_WC_SEND);
    completed(server, 23, IBV_WC_RECV);
    assert_true(there[0] == 0x3333);
}

static void event_tells_of_a_completion(struct end *server, struct end *client)
{
    struct ib_uverbs_comp_event_desc event;
    struct ib_uverbs_send_wr wr = {.wr_id = 30, .opcode = IBV_WR_SEND};
    uint32_t arm[2] = {server->uv.cq, 0};
    assert_int_equal(uv_send(server->uv.fd, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, arm, 8, NULL, 0), 0);
    assert_int_equal(uv_post_recv(&server->uv, 31, 8), 0);
    assert_int_equal(uv_post_send(&client->uv, &wr, 8), 0);
    struct pollfd readable = {server->uv.channel, POLLIN, 0};
    assert_int_equal(poll(&readable, 1, 20000), 1);
    assert_int_equal(anywarp_uverbs_read(server->uv.channel, &event, sizeof event), 8);
    assert_true(event.cq_handle == (uintptr_t)&server->uv);
    completed(server, 31, IBV_WC_RECV);
    completed(client, 30, IBV_WC_SEND);
}

static void disconnect(struct end *server, struct end *client)
{
    struct rdma_ucm_disconnect bye = {.id = client->id};
    assert_int_equal(cm_send(client->cm, RDMA_USER_CM_CMD_DISCONNECT, &bye, sizeof bye, 0), 0);
    event_of(client, DISCONNECTED, 2);
    event_of(server, DISCONNECTED, 3);
    /* As a librdmacm that disconnects, too: it drains first. */
    assert_int_equal(uv_modify(&server->uv, IBV_QPS_SQD, 0), 0);
    bye.id = server->id;
    assert_int_equal(cm_send(server->cm, RDMA_USER_CM_CMD_DISCONNECT, &bye, sizeof bye, 0), 0);
    assert_int_equal(uv_modify(&server->uv, IBV_QPS_SQD, IBV_QP_ACCESS_FLAGS), EINVAL);
}

static void end_of(struct end *e, uint32_t events)
{
    struct rdma_ucm_destroy_id_resp resp;
    struct rdma_ucm_destroy_id destroy = {.response = (uintptr_t)&resp, .id = e->id};
    assert_int_equal(
        cm_send(e->cm, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof destroy, sizeof resp), 0);
    assert_int_equal(resp.events_reported, events);
    assert_int_equal(
        cm_send(e->cm, RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof destroy, sizeof resp), ENOENT);
    assert_int_equal(anywarp_uverbs_close(e->cm), 0);
    uv_unmake(&e->uv);
}

static void a_connection_by_commands(void **state)
{
    (void)state;
    struct end server = {.id = 0}, client = {.id = 0};
    alarm(120);
    uv_make(&server.uv);
    uv_make(&client.uv);
    connect_ends(&server, &client);
    sends_writes_and_reads(&server, &client);
    event_tells_of_a_completion(&server, &client);
    disconnect(&server, &client);
    end_of(&client, 4);
    end_of(&server, 2);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_connection_by_commands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

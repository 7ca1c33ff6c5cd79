/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that is not anywarp and says nothing behind its Reply: siw may have overlooked our FPDU.
 */
#include "api/cm_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECONDS 10
#define NUDGES  4

struct raw {
    int listener, fd;
    struct sockaddr_storage addr;
};

static void raw_listen(struct raw *r)
{
    socklen_t len = sizeof(r->addr);
    cm_address(&r->addr, "127.0.0.1", 0);
    r->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&r->addr, len), 0);
    assert_int_equal(listen(r->listener, 1), 0);
    assert_int_equal(getsockname(r->listener, (struct sockaddr *)&r->addr, &len), 0);
}

/** Takes the Request of revision 2 without private data, and accepts as siw does, without CRC. */
static void raw_accept(struct raw *r)
{
    struct timeval limit = {.tv_sec = SECONDS};
    uint8_t request[24];
    uint8_t reply[25] = "MPA ID Rep Frame\x10\x02\x00\x04\x00\x01\x00\x01";
    r->fd = accept(r->listener, NULL, NULL);
    assert_true(r->fd >= 0);
    setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    assert_int_equal(recv(r->fd, request, sizeof(request), MSG_WAITALL), sizeof(request));
    assert_int_equal(send(r->fd, reply, 24, MSG_NOSIGNAL), 24);
}

/** @return the next FPDU's opcode, its ULPDU in @p ulpdu; -1 at the end of the stream */
static int raw_next(struct raw *r, uint8_t *ulpdu, size_t *len)
{
    uint8_t size[2], rest[8];
    ssize_t n = recv(r->fd, size, sizeof(size), MSG_WAITALL);
    assert_true(n >= 0); /* else nothing came in time */
    if (n == 0)
        return -1;
    *len = (size_t)size[0] << 8 | size[1];
    assert_in_range(*len, 14, 256);
    assert_int_equal(recv(r->fd, ulpdu, *len, MSG_WAITALL), *len);
    size_t tail = (6 - *len % 4) % 4 + 4;
    assert_int_equal(recv(r->fd, rest, tail, MSG_WAITALL), tail);
    return ulpdu[1] & 0xf;
}

/** After the Send come some Writes of no length, and only some; the program sees nothing of it. */
static void nudged(void **state)
{
    (void)state;
    static uint8_t ulpdu[256];
    size_t len;
    struct raw r;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    assert_non_null(channel);
    raw_listen(&r);
    struct rdma_cm_id *id = cm_prepare(channel, &r.addr);
    struct ibv_mr *mr = cm_reg(id);
    struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
    assert_int_equal(rdma_connect(id, &param), 0);
    raw_accept(&r);
    cm_expect(channel, RDMA_CM_EVENT_ESTABLISHED);

    struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    assert_int_equal(ibv_post_send(id->qp, &wr, &bad), 0);
    assert_int_equal(raw_next(&r, ulpdu, &len), 3);
    for (int i = 0; i < NUDGES; i++) {
        assert_int_equal(raw_next(&r, ulpdu, &len), 0);
        assert_int_equal(len, 14);
    }
    assert_int_equal(cm_poll(id->send_cq).status, IBV_WC_SUCCESS);
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(raw_next(&r, ulpdu, &len), -1);

    close(r.fd);
    close(r.listener);
    cm_expect(channel, RDMA_CM_EVENT_DISCONNECTED);
    cm_unreg(mr);
    cm_drop(id);
    rdma_destroy_event_channel(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nudged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

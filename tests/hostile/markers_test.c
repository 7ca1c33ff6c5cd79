/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that asks for markers gets them: every 512 bytes, right wherever they fall in an FPDU, and
 * without them the data are right (RFC 5044 section 4.3). Both roles, with CRC and without.
 */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define PERIOD  512
#define LONGEST 1100   /* messages of every size up to this: each place of a marker */
#define HUGE    200000 /* and one of many segments */
#define WRS     (LONGEST + 2)
#define STREAM  (2 << 20)

static uint8_t stream[STREAM];
static size_t stream_len;

/** Everything up to the FIN. */
static void take_all(struct peer *p)
{
    ssize_t n;
    memcpy(stream, p->in, p->in_len);
    stream_len = p->in_len;
    while ((n = recv(p->fd, stream + stream_len, STREAM - stream_len, 0)) > 0)
        stream_len += (size_t)n;
    assert_int_equal(n, 0);
    assert_true(stream_len < STREAM);
}

/** One FPDU from @p at on, its markers checked and taken out. @return where the next one begins */
static size_t take_fpdu(const struct peer *p, size_t at, uint8_t *fpdu, size_t *len)
{
    size_t start = at, want = 4, have = 0, field = at % PERIOD ? at : at + 4;
    while (have < want) {
        assert_true(at + 4 <= stream_len);
        if (at % PERIOD == 0) {
            uint32_t back = at < field ? 0 : (uint32_t)(at - field);
            assert_int_equal(peer_get32(stream + at), back);
            at += 4;
            continue;
        }
        memcpy(fpdu + have, stream + at, 4);
        have += 4;
        at += 4;
        if (have == 4)
            want = ((peer_get32(fpdu) >> 16) + 2 + 3) / 4 * 4 + 4;
    }
    if (p->crc)
        assert_true(peer_crc_good(stream + start, at - start));
    *len = peer_get32(fpdu) >> 16;
    return at;
}

/** The messages, in order and whole. */
static void check_stream(const struct peer *p, const uint8_t *data)
{
    static uint8_t fpdu[PEER_FPDU_MAX];
    uint32_t msn = 1, mo = 0;
    size_t at = 0, len;
    while (at < stream_len) {
        at = take_fpdu(p, at, fpdu, &len);
        const uint8_t *h = fpdu + 2;
        if (h[0] & PEER_TAGGED) { /* of no length, to make the peer look */
            assert_int_equal(len, 14);
            continue;
        }
        assert_int_equal(h[1], PEER_RDMAP_V1 | PEER_SEND);
        assert_int_equal(peer_get32(h + 10), msn);
        assert_int_equal(peer_get32(h + 14), mo);
        assert_memory_equal(h + 18, data + mo, len - 18);
        mo += (uint32_t)len - 18;
        if (!(h[0] & PEER_LAST))
            continue;
        assert_int_equal(mo, msn <= LONGEST ? msn : HUGE);
        msn++;
        mo = 0;
    }
    assert_int_equal(msn, LONGEST + 2);
}

static void run(void (*open)(struct peer *, const struct peer_conf *), bool no_crc)
{
    static struct peer p;
    open(&p, &(struct peer_conf){.no_crc = no_crc, .markers = true, .side = {.send_wr = WRS}});
    struct side *v = &p.victim;
    for (size_t i = 0; i < SIDE_BYTES; i++)
        v->buf[i] = (uint8_t)(i * 31 + i / 256);
    for (uint32_t size = 1; size <= LONGEST; size++)
        assert_int_equal(side_post(v, v, IBV_WR_SEND, size, 0, size, 0, 0), 0);
    assert_int_equal(side_post(v, v, IBV_WR_SEND, 0, 0, HUGE, 0, 0), 0);
    assert_int_equal(rdma_disconnect(v->id), 0);
    take_all(&p);
    check_stream(&p, v->buf);
    peer_hang_up(&p, false);
    for (int i = 0; i <= LONGEST; i++)
        assert_int_equal(side_poll(v).status, IBV_WC_SUCCESS);
    side_event(v, RDMA_CM_EVENT_DISCONNECTED);
    witness_goes_on();
    peer_close(&p);
}

static void of_a_responder(void **state)
{
    (void)state;
    run(peer_open, false);
    run(peer_open, true);
}

static void of_an_initiator(void **state)
{
    (void)state;
    run(peer_open_active, false);
    run(peer_open_active, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_responder),
        cmocka_unit_test(of_an_initiator),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}

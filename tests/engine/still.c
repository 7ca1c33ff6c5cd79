/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/still.h"

#include "device/context.h"
#include "env/random.h"
#include "qp/link.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

#include <sys/epoll.h>

static uint64_t state;

void still_seed(uint64_t seed)
{
    state = seed;
}

/* splitmix64 */
uint64_t still_random(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int iw_random32(uint32_t *out)
{
    *out = (uint32_t)still_random();
    return 0;
}

void iw_netwatch_add(struct iw_netwatch *w, void (*changed)(struct iw_netwatch *))
{
    w->changed = changed;
}

void iw_netwatch_del(struct iw_netwatch *w)
{
    w->changed = NULL;
}

struct ibv_context *still_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (list)
        ibv_free_device_list(list);
    return ctx;
}

void still_link(struct ibv_qp *q, struct iwc_stream *stream, const struct mpa_result *agreed,
                bool responder)
{
    static struct iw_source nowhere; /* not added: what it is asked for has no effect */
    struct iw_link l = {
        .stream = stream,
        .source = &nowhere,
        .agreed = agreed,
        .responder = responder,
        .hold = responder,
        .rtr = responder ? 0 : agreed->rtr,
    };
    int r = iw_qp_link(iw_qp(q), &l);
    assert(r == 0);
    (void)r;
}

void still_run(struct ibv_qp *q, uint32_t events)
{
    struct iw_qp *qp = iw_qp(q);
    uint32_t asked = EPOLLERR | EPOLLHUP;
    if (!qp->tx.rx_paused)
        asked |= EPOLLIN | EPOLLRDHUP;
    if (qp->tx.blocked)
        asked |= EPOLLOUT;
    if (qp->tx.linked && (events & asked))
        iw_qp_ready(qp, events & asked);
    if (qp->stream && !qp->tx.linked)
        qp->stream->ops->shutdown(qp->stream); /* the CM's part: it closes what was released */
    iw_deferred_wait(&qp->tx.deferred);
}

void still_empty_send(struct iwc_stream *peer)
{
    uint8_t fpdu[STILL_EMPTY_SEND] = {0};
    struct iovec v = {fpdu, sizeof(fpdu)};
    put_be16(fpdu, DDP_UNTAGGED_HDR);
    ddp_encode_untagged(fpdu + 2, RDMAP_SEND, true, 0, 1, 0);
    ssize_t taken = peer->ops->send(peer, &v, 1);
    assert(taken == sizeof(fpdu));
    (void)taken;
}

void still_unlink(struct ibv_qp *q)
{
    iw_qp_unlink(iw_qp(q));
}

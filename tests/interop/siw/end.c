/* SPDX-License-Identifier: BSD-2-Clause */
#include "end.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("end: failed: ", stdout);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    exit(1);
}

void must(int result, const char *what)
{
    if (result != 0)
        die("%s: %s", what, strerror(result > 0 ? result : errno));
}

uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void must_be(const void *object, const char *what)
{
    if (object == NULL)
        die("%s: %s", what, strerror(errno));
}

static void post_receive(struct end *end, unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)(end->slots + (size_t)slot * MESSAGE), MESSAGE,
                          end->messages->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    must(ibv_post_recv(end->id->qp, &wr, &bad), "ibv_post_recv");
    end->posted++;
}

void end_open(struct end *end)
{
    const int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 16, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_context *device = end->id->verbs;

    must_be(end->buffer = calloc(1, BUFFER), "calloc");
    must_be(end->slots = calloc(RECEIVES + 1, MESSAGE), "calloc");
    must_be(end->pd = ibv_alloc_pd(device), "ibv_alloc_pd");
    must_be(end->cq = ibv_create_cq(device, 64, NULL, NULL, 0), "ibv_create_cq");
    for (int i = 0; i < KEYS; i++)
        end->windows[i] = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
    end->mr = ibv_reg_mr(end->pd, end->buffer, BUFFER,
                         remote | (end->windows[0] ? IBV_ACCESS_MW_BIND : 0));
    must_be(end->mr, "ibv_reg_mr");
    end->local = ibv_reg_mr(end->pd, end->buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE);
    must_be(end->local, "ibv_reg_mr");
    for (int i = 0; i < KEYS; i++)
        if (!end->windows[i])
            must_be(end->regions[i] = ibv_reg_mr(end->pd, end->buffer, BUFFER, remote),
                    "ibv_reg_mr");
    end->messages =
        ibv_reg_mr(end->pd, end->slots, (RECEIVES + 1) * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
    must_be(end->messages, "ibv_reg_mr");
    attr.send_cq = attr.recv_cq = end->cq;
    must(rdma_create_qp(end->id, end->pd, &attr), "rdma_create_qp");
    for (unsigned i = 0; i < RECEIVES; i++)
        post_receive(end, i);
    must(fcntl(device->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
}

void end_close(struct end *end)
{
    rdma_destroy_qp(end->id);
    for (int i = 0; i < KEYS; i++)
        if (end->windows[i])
            must(ibv_dealloc_mw(end->windows[i]), "ibv_dealloc_mw");
        else
            must(ibv_dereg_mr(end->regions[i]), "ibv_dereg_mr");
    must(ibv_dereg_mr(end->mr), "ibv_dereg_mr");
    must(ibv_dereg_mr(end->local), "ibv_dereg_mr");
    must(ibv_dereg_mr(end->messages), "ibv_dereg_mr");
    must(ibv_destroy_cq(end->cq), "ibv_destroy_cq");
    must(ibv_dealloc_pd(end->pd), "ibv_dealloc_pd");
    must(rdma_destroy_id(end->id), "rdma_destroy_id");
    free(end->buffer);
    free(end->slots);
}

/* Polls one completion and counts it; false if there is none. */
static bool poll_one(struct end *end, struct ibv_wc *wc)
{
    int n = ibv_poll_cq(end->cq, 1, wc);

    if (n < 0)
        die("ibv_poll_cq");
    if (n == 0)
        return false;
    end->completed++;
    end->flushed += wc->status == IBV_WC_WR_FLUSH_ERR;
    if (wc->status != IBV_WC_SUCCESS && wc->wr_id >= RECEIVES && end->status == IBV_WC_SUCCESS)
        end->status = wc->status;
    return true;
}

static void wait_one(struct end *end, struct ibv_wc *wc, const char *what)
{
    uint64_t limit = now_ms() + SECONDS * 1000;

    while (!poll_one(end, wc))
        if (now_ms() > limit)
            die("no completion: %s", what);
    if (wc->status != IBV_WC_SUCCESS)
        die("%s: %s", what, ibv_wc_status_str(wc->status));
}

struct message end_receive(struct end *end, struct ibv_wc *wc)
{
    struct message m;

    if (end->early_count > 0) {
        *wc = end->early[0];
        memmove(end->early, end->early + 1, --end->early_count * sizeof(*wc));
    } else {
        wait_one(end, wc, "receive");
    }
    if (wc->wr_id >= RECEIVES || wc->byte_len != sizeof(m))
        die("completion of %u bytes, wr_id %llu", wc->byte_len, (unsigned long long)wc->wr_id);
    memcpy(&m, end->slots + wc->wr_id * MESSAGE, sizeof(m));
    post_receive(end, (unsigned)wc->wr_id);
    m.addr = be64toh(m.addr);
    m.rkey = ntohl(m.rkey);
    m.local_key = ntohl(m.local_key);
    for (int i = 0; i < KEYS; i++)
        m.spare[i] = ntohl(m.spare[i]);
    m.kind = ntohl(m.kind);
    m.sum = ntohl(m.sum);
    return m;
}

int end_post(struct end *end, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int result;

    wr->wr_id = RECEIVES;
    wr->send_flags |= IBV_SEND_SIGNALED;
    result = ibv_post_send(end->id->qp, wr, &bad);
    end->posted += result == 0;
    return result < 0 ? errno : result;
}

void end_do(struct end *end, struct ibv_send_wr *wr)
{
    struct ibv_wc wc;

    must(end_post(end, wr), "ibv_post_send");
    wait_one(end, &wc, "send queue");
    while (wc.wr_id != RECEIVES) {
        end->early[end->early_count++] = wc; /* at most RECEIVES are posted */
        wait_one(end, &wc, "send queue");
    }
}

/* Makes the keys that the peer may invalidate. */
static void make_keys(struct end *end)
{
    for (int i = 0; i < KEYS; i++) {
        struct ibv_mw *mw = end->windows[i];
        struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

        end->spare[i] = mw ? ibv_inc_rkey(mw->rkey) : end->regions[i]->rkey;
        if (!mw)
            continue;
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = end->spare[i];
        wr.bind_mw.bind_info.mr = end->mr;
        wr.bind_mw.bind_info.addr = (uintptr_t)end->buffer;
        wr.bind_mw.bind_info.length = BUFFER;
        wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        end_do(end, &wr);
    }
}

void end_greet(struct end *end, bool first)
{
    unsigned char *out = end->slots + (size_t)RECEIVES * MESSAGE;
    struct ibv_sge sge = {(uintptr_t)out, sizeof(struct message), end->messages->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
    struct message m = {
        .addr = htobe64((uintptr_t)end->buffer),
        .rkey = htonl(end->mr->rkey),
        .local_key = htonl(end->local->rkey),
    };
    struct ibv_wc wc;

    if (!first)
        end->peer = end_receive(end, &wc);
    make_keys(end);
    for (int i = 0; i < KEYS; i++)
        m.spare[i] = htonl(end->spare[i]);
    memcpy(out, &m, sizeof(m));
    end_do(end, &wr);
    if (first)
        end->peer = end_receive(end, &wc);
    puts("end: connected");
    fflush(stdout);
}

static void take_async_events(struct end *end)
{
    struct ibv_async_event event;

    while (ibv_get_async_event(end->id->verbs, &event) == 0) {
        size_t n = strlen(end->events);

        snprintf(end->events + n, sizeof(end->events) - n, "%s%s", n > 0 ? ", " : "",
                 ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
    }
}

void end_finish(struct end *end, int post_result)
{
    uint64_t limit = now_ms() + SECONDS * 1000;
    struct rdma_cm_event *event;
    struct ibv_wc wc;
    bool over = false;

    must(fcntl(end->channel->fd, F_SETFL, O_NONBLOCK), "fcntl");
    while (now_ms() < limit) {
        while (poll_one(end, &wc))
            ;
        take_async_events(end);
        if (rdma_get_cm_event(end->channel, &event) == 0) {
            if (event->event != RDMA_CM_EVENT_DISCONNECTED)
                die("event %s", rdma_event_str(event->event));
            rdma_ack_cm_event(event);
            end->disconnected++;
        }
        if (end->disconnected > 0 && !over) {
            over = true;
            limit = now_ms() + end->quiet_ms;
        }
        usleep(1000);
    }
    must(fcntl(end->channel->fd, F_SETFL, 0), "fcntl");
    printf("end: post=%s status=%s flushed=%u missing=%d disconnected=%u async=%s\n",
           post_result == 0 ? "ok" : strerror(post_result), ibv_wc_status_str(end->status),
           end->flushed, (int)(end->posted - end->completed), end->disconnected, end->events);
}

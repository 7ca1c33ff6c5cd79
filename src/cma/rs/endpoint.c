/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues and memory of a connection. */
#include "cma/rs/rs.h"
#include "common/sys.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LOW_WATER 2048
#define ROUND     4096U

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint16_t queue_size(uint16_t asked, int most)
{
    uint32_t top =
        most - 16 - RS_EXTRA_RECEIVES > 0xfffe ? 0xfffe : (uint32_t)(most - RS_EXTRA_RECEIVES);
    return (uint16_t)(asked < 16 ? 16 : least(asked, top));
}

static void fix_sizes(struct rs *rs, const struct ibv_device_attr *device)
{
    struct rs_sizes *s = &rs->sizes;
    s->sq = queue_size(s->sq, device->max_qp_wr);
    s->rq = queue_size(s->rq, device->max_qp_wr);
    if (s->sbuf < LOW_WATER)
        s->sbuf = 2 * LOW_WATER;
    /* Two halves, of whole pages. */
    s->rbuf = (s->rbuf + 2 * ROUND - 1) / (2 * ROUND) * 2 * ROUND;
}

/* The heap would keep them when the socket is closed. */
static void *pages(size_t len)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void give_back(void *p, size_t len)
{
    if (p)
        munmap(p, len);
}

static size_t rbuf_size(const struct rs *rs)
{
    return rs->sizes.rbuf + (size_t)rs->slots * 4;
}

static size_t tables_size(const struct rs *rs)
{
    return RS_TARGETS * sizeof(struct rs_buffer) + (size_t)rs->sizes.mappings * RS_MAPPING_SIZE;
}

static int make_memory(struct rs *rs)
{
    const int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    rs->rbuf = pages(rbuf_size(rs));
    rs->sbuf = pages(rs->sizes.sbuf);
    rs->tables = pages(tables_size(rs));
    rs->messages = calloc(rs->slots, sizeof *rs->messages);
    rs->peer_maps = calloc((size_t)rs->sizes.mappings + 1, sizeof *rs->peer_maps);
    if (!rs->rbuf || !rs->sbuf || !rs->tables || !rs->messages || !rs->peer_maps)
        return -ENOMEM;
    rs->rmr = ibv_reg_mr(rs->id->pd, rs->rbuf, rbuf_size(rs), remote);
    rs->smr =
        rs->rmr ? ibv_reg_mr(rs->id->pd, rs->sbuf, rs->sizes.sbuf, IBV_ACCESS_LOCAL_WRITE) : NULL;
    rs->tmr = rs->smr ? ibv_reg_mr(rs->id->pd, rs->tables, tables_size(rs), remote) : NULL;
    return rs->tmr ? 0 : -errno;
}

/* No call tells how much the device can send inline. */
static int make_qp(struct rs *rs, struct ibv_qp_init_attr *attr)
{
    while (rdma_create_qp(rs->id, NULL, attr) < 0) {
        if (errno != EINVAL || attr->cap.max_inline_data <= 64)
            return -errno;
        attr->cap.max_inline_data /= 2;
    }
    if (rs->sizes.inlined > attr->cap.max_inline_data)
        rs->sizes.inlined = (uint16_t)attr->cap.max_inline_data;
    return 0;
}

static int make_queues(struct rs *rs)
{
    struct ibv_context *device = rs->id->verbs;
    rs->comp = ibv_create_comp_channel(device);
    if (!rs->comp)
        return -errno;
    sys_fcntl(rs->comp->fd, F_SETFL, sys_fcntl(rs->comp->fd, F_GETFL, 0) | O_NONBLOCK);
    rs->cq = ibv_create_cq(device, rs->sizes.sq + (int)rs->slots, NULL, rs->comp, 0);
    if (!rs->cq)
        return -errno;
    struct ibv_qp_init_attr attr = {
        .send_cq = rs->cq,
        .recv_cq = rs->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = rs->sizes.sq,
                .max_recv_wr = rs->slots,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = rs->sizes.inlined < 32 ? 32 : rs->sizes.inlined},
    };
    return make_qp(rs, &attr);
}

static int post_receives(struct rs *rs)
{
    for (unsigned i = 0; i < rs->slots; i++) {
        struct ibv_sge sge = {(uintptr_t)(rs->rbuf + rs->sizes.rbuf + 4 * (size_t)i), 4,
                              rs->rmr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        int r = ibv_post_recv(rs->id->qp, &wr, &bad);
        if (r)
            return -r;
    }
    return 0;
}

int rs_endpoint_create(struct rs *rs)
{
    struct ibv_device_attr device;
    int r = ibv_query_device(rs->id->verbs, &device);
    if (r)
        return -r;
    fix_sizes(rs, &device);
    rs->slots = rs->sizes.rq + RS_EXTRA_RECEIVES;
    r = make_queues(rs);
    if (r == 0)
        r = make_memory(rs);
    if (r == 0)
        r = post_receives(rs);
    if (r < 0)
        return r;
    rs_begin(rs);
    return 0;
}

void rs_endpoint_destroy(struct rs *rs)
{
    struct list *link;
    if (rs->id && rs->id->qp)
        rdma_destroy_qp(rs->id);
    if (rs->cq)
        ibv_destroy_cq(rs->cq);
    if (rs->comp)
        ibv_destroy_comp_channel(rs->comp);
    while ((link = list_pop(&rs->iomaps))) {
        struct rs_iomap *map = container_of(link, struct rs_iomap, link);
        ibv_dereg_mr(map->mr);
        free(map);
    }
    if (rs->tmr)
        ibv_dereg_mr(rs->tmr);
    if (rs->smr)
        ibv_dereg_mr(rs->smr);
    if (rs->rmr)
        ibv_dereg_mr(rs->rmr);
    give_back(rs->rbuf, rbuf_size(rs));
    give_back(rs->sbuf, rs->sizes.sbuf);
    give_back(rs->tables, tables_size(rs));
    free(rs->messages);
    free(rs->peer_maps);
    rs->cq = NULL;
    rs->comp = NULL;
    rs->tmr = rs->smr = rs->rmr = NULL;
    rs->rbuf = rs->sbuf = rs->tables = NULL;
    rs->messages = NULL;
    rs->peer_maps = NULL;
}

void rs_hello_of(const struct rs *rs, uint8_t out[RS_HELLO_SIZE])
{
    struct rs_hello hello = {
        .credits = rs->sizes.rq,
        .mappings = rs->sizes.mappings,
        .tables = {(uintptr_t)rs->tables, rs->tmr->rkey, RS_TARGETS},
        .data = {(uintptr_t)rs->rbuf, rs->rmr->rkey, rs->sizes.rbuf / 2},
    };
    rs_encode_hello(&hello, out);
}

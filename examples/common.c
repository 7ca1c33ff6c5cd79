/* SPDX-License-Identifier: BSD-2-Clause */
#include "common.h"

#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Noreturn void usage(void)
{
    fprintf(stderr, "usage: %s", usage_text);
    exit(2);
}

unsigned long number(const char *text, unsigned long min, unsigned long max)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < min || value > max) {
        warnx("%s: not a number from %lu to %lu", text, min, max);
        usage();
    }
    return value;
}

static struct rdma_cm_id *create_endpoint(const char *node, const char *port, int flags,
                                          const struct ibv_qp_cap *cap)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *info;
    struct ibv_qp_init_attr attr = {.cap = *cap, .qp_type = IBV_QPT_RC};
    struct rdma_cm_id *id;
    int code = rdma_getaddrinfo(node, port, &hints, &info);
    if (code)
        errx(1, "%s, port %s: %s", node, port, code == -1 ? strerror(errno) : gai_strerror(code));
    if (rdma_create_ep(&id, info, NULL, &attr))
        err(1, "%s, port %s: rdma_create_ep", node, port);
    rdma_freeaddrinfo(info);
    return id;
}

struct rdma_cm_id *resolve(const char *server, const char *port, const struct ibv_qp_cap *cap)
{
    return create_endpoint(server, port, 0, cap);
}

struct rdma_cm_id *listen_on(const char *address, const char *port, const struct ibv_qp_cap *cap)
{
    struct rdma_cm_id *id = create_endpoint(address, port, RAI_PASSIVE, cap);
    if (rdma_listen(id, 64))
        err(1, "%s, port %s: rdma_listen", address, port);
    return id;
}

struct rdma_cm_id *next_client(struct rdma_cm_id *listener)
{
    struct rdma_cm_id *id;
    if (rdma_get_request(listener, &id))
        err(1, "rdma_get_request");
    return id;
}

void connect_to_server(struct rdma_cm_id *id, uint8_t reads, const void *data, uint8_t size)
{
    struct rdma_conn_param param = {
        .initiator_depth = reads,
        .private_data = data,
        .private_data_len = size,
        .retry_count = 7,
        .rnr_retry_count = 7,
    };
    if (rdma_connect(id, &param))
        err(1, "rdma_connect");
}

bool accept_client(struct rdma_cm_id *id, uint8_t reads, const struct ibv_mr *shared)
{
    struct region region = {0};
    struct rdma_conn_param param = {.responder_resources = reads, .rnr_retry_count = 7};
    if (shared) {
        region.addr = htobe64((uintptr_t)shared->addr);
        region.length = htobe64(shared->length);
        region.rkey = htonl(shared->rkey);
        param.private_data = &region;
        param.private_data_len = sizeof region;
    }
    if (!rdma_accept(id, &param))
        return true;
    warn("rdma_accept");
    return false;
}

void leave(struct rdma_cm_id *id)
{
    rdma_disconnect(id);
    rdma_destroy_ep(id);
}

struct region region_of_server(const struct rdma_cm_id *id, uint64_t length)
{
    struct region region;
    if (!id->event || id->event->param.conn.private_data_len < sizeof region)
        errx(1, "the server does not say where its memory is: is it another program?");
    memcpy(&region, id->event->param.conn.private_data, sizeof region);
    region.addr = be64toh(region.addr);
    region.length = be64toh(region.length);
    region.rkey = ntohl(region.rkey);
    if (region.length < length)
        errx(1, "the server shares too little memory: is it another program?");
    return region;
}

struct ibv_mr *register_memory(struct rdma_cm_id *id, void *addr, size_t length, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(id->pd, addr, length, access);
    if (!mr)
        err(1, "ibv_reg_mr: %zu bytes", length);
    return mr;
}

void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        err(1, "%zu bytes", size);
    return memory;
}

void post_receive(struct rdma_cm_id *id, struct ibv_mr *mr)
{
    if (rdma_post_recv(id, NULL, mr->addr, mr->length, mr))
        err(1, "rdma_post_recv");
}

void post_send(struct rdma_cm_id *id, struct ibv_mr *mr, size_t length)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)mr->addr, .length = (uint32_t)length, .lkey = mr->lkey};
    if (rdma_post_sendv(id, NULL, &sge, length ? 1 : 0, IBV_SEND_SIGNALED))
        err(1, "rdma_post_send");
}

bool succeeded(const struct ibv_wc *wc, const char *what)
{
    if (wc->status == IBV_WC_SUCCESS)
        return true;
    /* What was queued when a connection ended is flushed. */
    warnx("%s: %s", what,
          wc->status == IBV_WC_WR_FLUSH_ERR ? "the connection has ended"
                                            : ibv_wc_status_str(wc->status));
    return false;
}

struct ibv_wc await_sent(struct rdma_cm_id *id, const char *what)
{
    struct ibv_wc wc;
    if (rdma_get_send_comp(id, &wc) < 0)
        err(1, "rdma_get_send_comp");
    if (!succeeded(&wc, what))
        exit(1);
    return wc;
}

struct ibv_wc await_received(struct rdma_cm_id *id, const char *what)
{
    struct ibv_wc wc;
    if (rdma_get_recv_comp(id, &wc) < 0)
        err(1, "rdma_get_recv_comp");
    if (!succeeded(&wc, what))
        exit(1);
    return wc;
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

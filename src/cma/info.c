/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo(): getaddrinfo() with the answer in terms of queue pairs and port spaces. */
#include "cma.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static void *copy(const void *from, size_t len)
{
    void *to = malloc(len);
    return to ? memcpy(to, from, len) : NULL;
}

static void to_libc(const struct rdma_addrinfo *hints, struct addrinfo *out)
{
    memset(out, 0, sizeof *out);
    if (hints->ai_flags & RAI_PASSIVE)
        out->ai_flags |= AI_PASSIVE;
    if (hints->ai_flags & RAI_NUMERICHOST)
        out->ai_flags |= AI_NUMERICHOST;
    out->ai_family = hints->ai_family == AF_IB ? AF_UNSPEC : hints->ai_family;
    switch (hints->ai_qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        out->ai_socktype = SOCK_STREAM;
        break;
    case IBV_QPT_UD:
        out->ai_socktype = SOCK_DGRAM;
        break;
    }
    switch (hints->ai_port_space) {
    case RDMA_PS_TCP:
        out->ai_protocol = IPPROTO_TCP;
        break;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
        out->ai_protocol = IPPROTO_UDP;
        break;
    }
}

/* One address of a result: where it goes depends on who asked. */
static int set_addr(const struct sockaddr *addr, socklen_t len, const char *name,
                    struct sockaddr **to, socklen_t *to_len, char **to_name)
{
    *to = copy(addr, len);
    if (!*to)
        return -ENOMEM;
    *to_len = len;
    if (name && !(*to_name = strdup(name)))
        return -ENOMEM;
    return 0;
}

static int from_libc(const struct addrinfo *ai, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo *rai)
{
    bool datagrams = ai->ai_socktype == SOCK_DGRAM;
    bool passive = hints && (hints->ai_flags & RAI_PASSIVE);
    rai->ai_family = ai->ai_family;
    rai->ai_qp_type = hints ? hints->ai_qp_type : 0;
    rai->ai_port_space = hints ? hints->ai_port_space : 0;
    if (!rai->ai_qp_type)
        rai->ai_qp_type = datagrams ? IBV_QPT_UD : IBV_QPT_RC;
    if (!rai->ai_port_space)
        rai->ai_port_space = datagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
    if (!passive)
        return set_addr(ai->ai_addr, ai->ai_addrlen, ai->ai_canonname, &rai->ai_dst_addr,
                        &rai->ai_dst_len, &rai->ai_dst_canonname);
    rai->ai_flags = RAI_PASSIVE;
    return set_addr(ai->ai_addr, ai->ai_addrlen, ai->ai_canonname, &rai->ai_src_addr,
                    &rai->ai_src_len, &rai->ai_src_canonname);
}

static int from_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
    rai->ai_flags = hints->ai_flags;
    rai->ai_family = hints->ai_family;
    rai->ai_qp_type = hints->ai_qp_type;
    rai->ai_port_space = hints->ai_port_space;
    if (!hints->ai_dst_len)
        return 0;
    return set_addr(hints->ai_dst_addr, hints->ai_dst_len, NULL, &rai->ai_dst_addr,
                    &rai->ai_dst_len, &rai->ai_dst_canonname);
}

static int add_source(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
    if (rai->ai_src_len || !hints || !hints->ai_src_len)
        return 0;
    return set_addr(hints->ai_src_addr, hints->ai_src_len, NULL, &rai->ai_src_addr,
                    &rai->ai_src_len, &rai->ai_src_canonname);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **res)
{
    struct addrinfo libc_hints, *ai = NULL;
    if (!res || (!node && !service && !hints))
        return cma_fail(iw_refuse(__func__, VALUE,
                                  "neither node, service nor hints, or no place for the result"));
    if (!iw_cm_contexts())
        return -1;
    if (iw_cm_chaos(IW_FAULT_GETADDRINFO, NULL))
        return cma_fail(ENOMEM);
    if (hints)
        to_libc(hints, &libc_hints);
    if (node || service) {
        int code = getaddrinfo(node, service, hints ? &libc_hints : NULL, &ai);
        if (code)
            return code;
    }

    struct rdma_addrinfo *rai = calloc(1, sizeof *rai);
    int r = rai ? 0 : -ENOMEM;
    if (r == 0)
        r = ai ? from_libc(ai, hints, rai) : from_hints(hints, rai);
    if (r == 0)
        r = add_source(hints, rai);
    if (ai)
        freeaddrinfo(ai);
    if (r < 0) {
        rdma_freeaddrinfo(rai);
        return cma_fail(-r);
    }
    *res = rai;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
    while (res) {
        struct rdma_addrinfo *next = res->ai_next;
        free(res->ai_connect);
        free(res->ai_route);
        free(res->ai_src_canonname);
        free(res->ai_dst_canonname);
        free(res->ai_src_addr);
        free(res->ai_dst_addr);
        free(res);
        res = next;
    }
}

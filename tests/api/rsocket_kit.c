/* SPDX-License-Identifier: BSD-2-Clause */
#include "rsocket_kit.h"

#include <stdlib.h>

struct sockaddr_in loopback(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int stream(void)
{
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    return fd;
}

int listen_at(struct sockaddr_in *addr, int mappings)
{
    socklen_t len = sizeof *addr;
    int fd = stream();
    *addr = loopback();
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings), 0);
    assert_int_equal(rbind(fd, (struct sockaddr *)addr, sizeof *addr), 0);
    assert_int_equal(rlisten(fd, 4), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)addr, &len), 0);
    return fd;
}

void join(struct ends *e)
{
    struct sockaddr_in addr;
    int mappings = 2;
    e->listener = listen_at(&addr, mappings);
    e->a = stream();
    assert_int_equal(rsetsockopt(e->a, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings), 0);
    assert_int_equal(rconnect(e->a, (struct sockaddr *)&addr, sizeof addr), 0);
    e->b = raccept(e->listener, NULL, NULL);
    assert_true(e->b >= 0);
}

void part(const struct ends *e)
{
    assert_int_equal(rclose(e->a), 0);
    assert_int_equal(rclose(e->b), 0);
    assert_int_equal(rclose(e->listener), 0);
}

void wait_for(int fd, short events)
{
    struct pollfd p = {fd, events, 0};
    assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    assert_true(p.revents & events);
}

void *send_much(void *arg)
{
    int fd = *(int *)arg;
    uint8_t *data = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 12));
    ssize_t n = rsend(fd, data, MUCH, 0);
    rshutdown(fd, SHUT_WR);
    free(data);
    return (void *)(intptr_t)n;
}

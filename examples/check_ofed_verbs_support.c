/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells whether a host can be reached through an RDMA device: for programs that use RDMA where they
 * can and sockets where they cannot.
 *
 *     cc check_ofed_verbs_support.c $(pkg-config --cflags --libs librdmacm libibverbs) -o check
 *     check HOST
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define TIMEOUT_MS 5000

/* @return 0 if there is a device that leads to the address, otherwise an errno that says why not */
static int check_ofed_verbs_support(struct sockaddr *address)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    int error = 0;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (!channel)
        return errno;
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
        error = errno;
        rdma_destroy_event_channel(channel);
        return error;
    }
    if (rdma_resolve_addr(id, NULL, address, TIMEOUT_MS) || rdma_get_cm_event(channel, &event)) {
        error = errno;
    } else {
        if (event->event != RDMA_CM_EVENT_ADDR_RESOLVED)
            error = event->status ? abs(event->status) : EHOSTUNREACH;
        rdma_ack_cm_event(event);
    }
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return error;
}

int main(int argc, char *argv[])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: check_ofed_verbs_support host\n");
        return 2;
    }
    int code = getaddrinfo(argv[1], NULL, &hints, &list);
    if (code)
        errx(1, "%s: %s", argv[1], gai_strerror(code));
    int error = 0;
    for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
        error = check_ofed_verbs_support(ai->ai_addr);
        if (!error)
            break;
    }
    freeaddrinfo(list);
    if (error)
        errx(1, "%s: %s", argv[1], strerror(error));
    printf("%s: RDMA is supported\n", argv[1]);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells whether RDMA leads to a host: for programs that use RDMA where they can and sockets where
 * they cannot. With a port it also connects, for a device may lead to where nobody is.
 *
 *     cc check_ofed_verbs_support.c $(pkg-config --cflags --libs librdmacm libibverbs) -o check
 *     check HOST
 *     check -p PORT HOST
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define SECONDS_MAX 3600

static struct rdma_event_channel *channel;
static struct timespec end; /* nothing is waited for longer */
static char reason[256];    /* why the last address will not do */

static void give_up(const char *what, int error)
{
    snprintf(reason, sizeof reason, "%s: %s", what, strerror(error));
}

static int remaining_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long ms = (end.tv_sec - now.tv_sec) * 1000 + (end.tv_nsec - now.tv_nsec) / 1000000;
    return ms > 0 ? (int)ms : 0;
}

/* Whether what was begun ends in this event, and in time. */
static bool ends_in(enum rdma_cm_event_type wanted)
{
    struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    if (poll(&readable, 1, remaining_ms()) == 0) {
        snprintf(reason, sizeof reason, "no answer in time");
        return false;
    }
    if (rdma_get_cm_event(channel, &event)) {
        give_up("rdma_get_cm_event", errno);
        return false;
    }
    bool so = event->event == wanted;
    if (!so)
        give_up(rdma_event_str(event->event), abs(event->status));
    rdma_ack_cm_event(event);
    return so;
}

/* A route is a look at tables of this host: nothing is sent. */
static bool has_route(struct rdma_cm_id *id, struct sockaddr *address)
{
    if (rdma_resolve_addr(id, NULL, address, remaining_ms() + 1)) {
        give_up("rdma_resolve_addr", errno);
        return false;
    }
    return ends_in(RDMA_CM_EVENT_ADDR_RESOLVED);
}

/* The program there gets a connection, which ends at once. */
static bool connects(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
    if (rdma_resolve_route(id, remaining_ms() + 1)) {
        give_up("rdma_resolve_route", errno);
        return false;
    }
    if (!ends_in(RDMA_CM_EVENT_ROUTE_RESOLVED))
        return false;
    if (rdma_create_qp(id, NULL, &attr)) {
        give_up("rdma_create_qp", errno);
        return false;
    }
    bool connected = false;
    if (rdma_connect(id, &param))
        give_up("rdma_connect", errno);
    else
        connected = ends_in(RDMA_CM_EVENT_ESTABLISHED);
    if (connected)
        rdma_disconnect(id);
    rdma_destroy_qp(id);
    return connected;
}

/* @return whether the address will do; otherwise reason says why not */
static bool check(const char *host, const char *port, struct sockaddr *address)
{
    struct rdma_cm_id *id;
    *reason = '\0';
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
        give_up("rdma_create_id", errno);
        return false;
    }
    bool good = has_route(id, address) && (!port || connects(id));
    if (good && port)
        printf("%s port %s: connected through device %s\n", host, port,
               ibv_get_device_name(id->verbs->device));
    else if (good)
        printf("%s: a route through device %s (no host was asked)\n", host,
               ibv_get_device_name(id->verbs->device));
    rdma_destroy_id(id);
    return good;
}

static void usage(void)
{
    fprintf(stderr, "usage: check_ofed_verbs_support [-p port] [-t seconds] host\n");
    exit(2);
}

int main(int argc, char *argv[])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    const char *port = NULL;
    long seconds = 5;
    for (int c; (c = getopt(argc, argv, "p:t:")) != -1;) {
        char *rest = "";
        if (c == 'p')
            port = optarg;
        else if (c == 't')
            seconds = strtol(optarg, &rest, 10);
        else
            usage();
        if (!*optarg || *rest || seconds < 1 || seconds > SECONDS_MAX)
            usage();
    }
    if (optind != argc - 1)
        usage();
    const char *host = argv[optind];
    int code = getaddrinfo(host, port, &hints, &list);
    if (code)
        errx(1, "%s: %s", host, gai_strerror(code));
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    channel = rdma_create_event_channel();
    if (!channel)
        err(1, "%s: rdma_create_event_channel", host);
    bool good = false;
    for (struct addrinfo *ai = list; ai && !good; ai = ai->ai_next)
        good = check(host, port, ai->ai_addr);
    freeaddrinfo(list);
    rdma_destroy_event_channel(channel);
    if (!good)
        errx(1, "%s: %s", host, reason);
    return 0;
}

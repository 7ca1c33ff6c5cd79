/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * end [-c ADDRESS] -p PORT [-d BYTES] [-r] [-n COUNT] [-k] ACTION
 * Listens, or with -c connects, COUNT times in a row; greets, and does ACTION (action.c).
 * -d: private data, which the other end must receive; -r: it comes with a rejection.
 * -k: plain Sends instead of those that invalidate, for libsiw, which would always send key 0.
 */
#include "end.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *address, *action;
    unsigned short port;
    unsigned bytes, count;
    bool reject, no_keys;
} options = {.count = 1};

static unsigned char private_data[256];

static struct rdma_event_channel *new_channel(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();

    if (channel == NULL)
        die("rdma_create_event_channel");
    return channel;
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *channel,
                                        enum rdma_cm_event_type want)
{
    struct rdma_cm_event *event;

    must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    if (event->event != want)
        die("%s, status %d, instead of %s", rdma_event_str(event->event), event->status,
            rdma_event_str(want));
    return event;
}

static void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type want)
{
    rdma_ack_cm_event(next_event(channel, want));
}

/* A length of more than was sent is padding, which must be zero. */
static void check_private_data(const struct rdma_cm_event *event)
{
    const unsigned char *got = event->param.conn.private_data;
    unsigned len = event->param.conn.private_data_len;

    if (len < options.bytes || (options.bytes > 0 && memcmp(got, private_data, options.bytes) != 0))
        die("%u bytes of private data, not the %u that were sent", len, options.bytes);
    for (unsigned i = options.bytes; i < len; i++)
        if (got[i] != 0)
            die("%u bytes of private data instead of %u", len, options.bytes);
}

static struct rdma_conn_param parameters(void)
{
    return (struct rdma_conn_param){
        .private_data = private_data,
        .private_data_len = (uint8_t)options.bytes,
        .responder_resources = 4,
        .initiator_depth = 4,
    };
}

static struct sockaddr_in address(void)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(options.port)};

    if (options.address != NULL && inet_pton(AF_INET, options.address, &sin.sin_addr) != 1)
        die("address %s", options.address);
    return sin;
}

static void act(struct end *end)
{
    end->no_keys = options.no_keys;
    end->quiet_ms = options.count > 1 ? 5 : 300;
    end_greet(end, options.address != NULL);
    end_finish(end, action_run(end, options.action));
    end_close(end);
}

static void connect_once(struct rdma_event_channel *channel)
{
    struct end end = {.channel = channel};
    struct rdma_conn_param param = parameters();
    struct sockaddr_in to = address();
    struct rdma_cm_event *event;

    must(rdma_create_id(channel, &end.id, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(rdma_resolve_addr(end.id, NULL, (struct sockaddr *)&to, 2000), "rdma_resolve_addr");
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    must(rdma_resolve_route(end.id, 2000), "rdma_resolve_route");
    expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    end_open(&end);
    must(rdma_connect(end.id, &param), "rdma_connect");
    event =
        next_event(channel, options.reject ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_ESTABLISHED);
    check_private_data(event);
    rdma_ack_cm_event(event);
    if (!options.reject) {
        act(&end);
        return;
    }
    puts("end: rejected");
    end_close(&end);
}

/* Its events have a channel of their own: the next request may come before it has ended. */
static void accept_once(struct rdma_event_channel *channel)
{
    struct rdma_cm_event *event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct end end = {.channel = new_channel(), .id = event->id};
    struct rdma_conn_param param = parameters();

    check_private_data(event);
    rdma_ack_cm_event(event);
    if (options.reject) {
        must(rdma_reject(end.id, private_data, (uint8_t)options.bytes), "rdma_reject");
        must(rdma_destroy_id(end.id), "rdma_destroy_id");
    } else {
        must(rdma_migrate_id(end.id, end.channel), "rdma_migrate_id");
        end_open(&end);
        must(rdma_accept(end.id, &param), "rdma_accept");
        expect_event(end.channel, RDMA_CM_EVENT_ESTABLISHED);
        act(&end);
    }
    rdma_destroy_event_channel(end.channel);
}

static void serve(struct rdma_event_channel *channel)
{
    struct sockaddr_in any = address();
    struct rdma_cm_id *listener;

    must(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
    must(rdma_listen(listener, 8), "rdma_listen");
    for (unsigned i = 0; i < options.count; i++)
        accept_once(channel);
    must(rdma_destroy_id(listener), "rdma_destroy_id");
}

static void parse(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "c:p:d:n:rk")) != -1) {
        switch (option) {
        case 'c':
            options.address = optarg;
            break;
        case 'p':
            options.port = (unsigned short)atoi(optarg);
            break;
        case 'd':
            options.bytes = (unsigned)atoi(optarg);
            break;
        case 'n':
            options.count = (unsigned)atoi(optarg);
            break;
        case 'k':
            options.no_keys = true;
            break;
        case 'r':
            options.reject = true;
            break;
        default:
            exit(2);
        }
    }
    options.action = argv[optind];
    if (options.action == NULL || !action_known(options.action) || options.port == 0 ||
        options.bytes >= sizeof(private_data))
        die("usage");
}

int main(int argc, char **argv)
{
    struct rdma_event_channel *channel;

    parse(argc, argv);
    for (unsigned i = 0; i < sizeof(private_data); i++)
        private_data[i] = (unsigned char)(i + 1);
    channel = new_channel();
    if (options.address == NULL)
        serve(channel);
    else
        for (unsigned i = 0; i < options.count; i++)
            connect_once(channel);
    rdma_destroy_event_channel(channel);
    puts("end: done");
    return 0;
}

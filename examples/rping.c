/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping over all operations of a connection. Each ping goes
 *
 *     client                                     server
 *     Send: where the text is                    RDMA Read of the text
 *                                                Send: go ahead
 *     Send: where its copy may go                RDMA Write of the text
 *                                                Send: go ahead
 *
 * and the client compares. This is the exchange of the program of the same name in rdma-core, which
 * can be at the other end; so are the options and what -v prints.
 *
 *     cc rping.c $(pkg-config --cflags --libs librdmacm libibverbs) -o rping
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define TIMEOUT_MS 5000
#define MAX_SIZE   65536 /* of a text with its final 0, exclusive */
#define MIN_SIZE   23    /* "rdma-ping-2147483647: " and the 0 */

static struct {
    bool server, client, print, validate, debug, persistent, own_qp;
    const char *address, *source, *port;
    unsigned long count; /* 0: no end */
    size_t size;
    int tos; /* -1: the system's */
} options = {.port = "7174", .size = 64, .tos = -1};

/* The only message that is sent: where memory is. In a "go ahead" it means nothing. */
struct place {
    uint64_t addr; /* all in network byte order */
    uint32_t key, size;
};

enum operation { SEND, RECEIVE, READ, WRITE, OPERATIONS };
static const char *const operation_names[] = {"send", "receive", "RDMA Read", "RDMA Write"};

struct connection {
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *messages_mr, *text_mr, *copy_mr;
    struct {
        struct place sent, received;
    } messages;
    char text[MAX_SIZE], copy[MAX_SIZE];
    unsigned int done[OPERATIONS]; /* completions that nobody has waited for yet */
    unsigned long pings;
    bool ended; /* the other end has disconnected */
};

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: rping -s [-vVdPq] [-a address] [-p port] [-C count] [-S size] [-t tos]\n"
            "       rping -c [-vVdq] -a address [-I address] [-p port] [-C count] [-S size]\n"
            "             [-t tos]\n"
            "    -s, -c      server, client\n"
            "    -a address  of the server: to listen on, or to connect to\n"
            "    -I address  of the client, to connect from\n"
            "    -p port     of the server, default 7174\n"
            "    -C count    pings of a connection, default without an end\n"
            "    -S size     of a text in bytes, default 64\n"
            "    -v          print each text\n"
            "    -V          the client compares what comes back\n"
            "    -P          the server takes clients until it is killed, several at a time\n"
            "    -q          make queue pairs without the connection manager\n"
            "    -t tos      type of service\n"
            "    -d          tell each step\n");
    exit(2);
}

__attribute__((format(printf, 1, 2))) static void debug(const char *format, ...)
{
    va_list arguments;
    if (!options.debug)
        return;
    va_start(arguments, format);
    vwarnx(format, arguments);
    va_end(arguments);
}

static unsigned long number(const char *text, unsigned long min, unsigned long max)
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

/* ---- A connection; functions that return bool have printed what failed ---- */

static bool fail(const char *what)
{
    warn("%s", what);
    return false;
}

/* With -q the program makes the queue pair, and the connection manager is told its number. */
static bool create_qp(struct connection *c)
{
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
        .send_cq = c->cq,
        .recv_cq = c->cq,
        .qp_type = IBV_QPT_RC,
    };
    if (!options.own_qp) {
        if (rdma_create_qp(c->id, c->pd, &init))
            return fail("rdma_create_qp");
        c->qp = c->id->qp;
        return true;
    }
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask;
    c->qp = ibv_create_qp(c->pd, &init);
    if (!c->qp)
        return fail("ibv_create_qp");
    if (rdma_init_qp_attr(c->id, &attr, &mask))
        return fail("rdma_init_qp_attr");
    return !rdma_seterrno(ibv_modify_qp(c->qp, &attr, mask)) || fail("ibv_modify_qp");
}

static struct ibv_mr *register_memory(struct connection *c, void *addr, size_t size, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(c->pd, addr, size, access);
    if (!mr)
        warn("ibv_reg_mr");
    return mr;
}

static bool create_resources(struct connection *c)
{
    struct ibv_context *device = c->id->verbs;
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    if (!(c->pd = ibv_alloc_pd(device)))
        return fail("ibv_alloc_pd");
    if (!(c->channel = ibv_create_comp_channel(device)))
        return fail("ibv_create_comp_channel");
    if (!(c->cq = ibv_create_cq(device, 8, NULL, c->channel, 0)))
        return fail("ibv_create_cq");
    if (rdma_seterrno(ibv_req_notify_cq(c->cq, 0)))
        return fail("ibv_req_notify_cq");
    c->messages_mr = register_memory(c, &c->messages, sizeof c->messages, IBV_ACCESS_LOCAL_WRITE);
    /* Only a client's memory is accessed from outside. */
    c->text_mr = register_memory(c, c->text, sizeof c->text,
                                 options.client ? access : IBV_ACCESS_LOCAL_WRITE);
    c->copy_mr = options.client ? register_memory(c, c->copy, sizeof c->copy, access) : NULL;
    if (!c->messages_mr || !c->text_mr || (options.client && !c->copy_mr))
        return false;
    debug("queue pair, completion queue and memory are made");
    return create_qp(c);
}

static struct connection *create_connection(struct rdma_cm_id *id)
{
    struct connection *c = calloc(1, sizeof *c);
    if (c)
        c->id = id;
    else
        warn("a connection");
    return c;
}

/* Also of a connection that was not made completely. */
static void destroy_connection(struct connection *c)
{
    if (c->id->qp)
        rdma_destroy_qp(c->id);
    else if (c->qp)
        ibv_destroy_qp(c->qp);
    if (c->copy_mr)
        ibv_dereg_mr(c->copy_mr);
    if (c->text_mr)
        ibv_dereg_mr(c->text_mr);
    if (c->messages_mr)
        ibv_dereg_mr(c->messages_mr);
    if (c->cq)
        ibv_destroy_cq(c->cq);
    if (c->channel)
        ibv_destroy_comp_channel(c->channel);
    if (c->pd)
        ibv_dealloc_pd(c->pd);
    rdma_destroy_id(c->id);
    free(c);
}

static bool post_receive(struct connection *c)
{
    struct ibv_sge sge = {(uintptr_t)&c->messages.received, sizeof c->messages.received,
                          c->messages_mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1};
    return !rdma_seterrno(ibv_post_recv(c->qp, &wr, &bad)) || fail("ibv_post_recv");
}

/* Posts one work request about local memory and, but for a Send, a place of the peer's. */
static bool post(struct connection *c, enum operation operation, void *addr, size_t size,
                 const struct ibv_mr *mr, struct place place)
{
    static const enum ibv_wr_opcode opcodes[] = {
        [SEND] = IBV_WR_SEND, [READ] = IBV_WR_RDMA_READ, [WRITE] = IBV_WR_RDMA_WRITE};
    struct ibv_sge sge = {(uintptr_t)addr, (uint32_t)size, mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = operation,
                                 .opcode = opcodes[operation],
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .wr.rdma = {be64toh(place.addr), ntohl(place.key)},
                             };
    debug("%s of %zu bytes", operation_names[operation], size);
    return !rdma_seterrno(ibv_post_send(c->qp, &wr, &bad)) || fail("ibv_post_send");
}

static bool note_completion(struct connection *c, const struct ibv_wc *wc)
{
    enum operation operation = (enum operation)wc->wr_id;
    if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        c->ended = true;
        return false;
    }
    if (wc->status != IBV_WC_SUCCESS) {
        warnx("%s: %s", operation_names[operation], ibv_wc_status_str(wc->status));
        return false;
    }
    if (operation == RECEIVE && wc->byte_len != sizeof(struct place)) {
        warnx("a message of %u bytes: the other end is not rping", wc->byte_len);
        return false;
    }
    debug("%s completed", operation_names[operation]);
    c->done[operation]++;
    return true;
}

/*
 * Waits for one completion of this kind; others are noted. After an event the queue is armed again
 * and only then polled until it is empty. False, without a message, when the connection has ended.
 */
static bool await(struct connection *c, enum operation operation)
{
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    while (c->done[operation] == 0) {
        int n = ibv_poll_cq(c->cq, 1, &wc);
        if (n < 0) {
            warnx("ibv_poll_cq failed");
            return false;
        }
        if (n > 0) {
            if (!note_completion(c, &wc))
                return false;
            continue;
        }
        if (ibv_get_cq_event(c->channel, &cq, &context))
            return fail("ibv_get_cq_event");
        ibv_ack_cq_events(cq, 1);
        if (rdma_seterrno(ibv_req_notify_cq(cq, 0)))
            return fail("ibv_req_notify_cq");
    }
    c->done[operation]--;
    return true;
}

static bool send_message(struct connection *c)
{
    static const struct place none;
    return post(c, SEND, &c->messages.sent, sizeof c->messages.sent, c->messages_mr, none) &&
           await(c, SEND);
}

/* The next message has its place before the peer can know that this one was taken. */
static bool receive_message(struct connection *c, struct place *place)
{
    if (!await(c, RECEIVE))
        return false;
    *place = c->messages.received;
    return post_receive(c);
}

static void set_param(const struct connection *c, struct rdma_conn_param *param)
{
    *param = (struct rdma_conn_param){
        .responder_resources = 1,
        .initiator_depth = 1,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .qp_num = c->qp->qp_num, /* counts with -q only */
    };
}

static bool has_more(const struct connection *c)
{
    return !options.count || c->pings < options.count;
}

/* ---- Client ---- */

/* Texts go round the printable letters, each beginning one later than the last. */
static void write_text(struct connection *c)
{
    int letter = 'A' + (int)(c->pings % ('z' - 'A' + 1));
    size_t i = (size_t)snprintf(c->text, options.size, "rdma-ping-%lu: ", c->pings);
    for (; i < options.size - 1; i++) {
        c->text[i] = (char)letter;
        letter = letter == 'z' ? 'A' : letter + 1;
    }
    c->text[options.size - 1] = '\0';
}

/* Tells the server of memory; its answer comes when it has done its part. */
static bool offer(struct connection *c, const char *addr, const struct ibv_mr *mr)
{
    struct place go_ahead;
    c->messages.sent =
        (struct place){htobe64((uintptr_t)addr), htonl(mr->rkey), htonl((uint32_t)options.size)};
    return send_message(c) && receive_message(c, &go_ahead);
}

static bool client_ping(struct connection *c)
{
    write_text(c);
    memset(c->copy, 0, options.size);
    if (!offer(c, c->text, c->text_mr) || !offer(c, c->copy, c->copy_mr))
        return false;
    if (options.validate && memcmp(c->text, c->copy, options.size) != 0) {
        warnx("ping %lu: what came back is not what was sent", c->pings);
        return false;
    }
    if (options.print)
        printf("ping data: %s\n", c->copy);
    c->pings++;
    return true;
}

static bool run_client(struct connection *c)
{
    struct rdma_conn_param param;
    if (!create_resources(c) || !post_receive(c))
        return false;
    set_param(c, &param);
    if (rdma_connect(c->id, &param))
        return fail("rdma_connect");
    debug("connected");
    while (has_more(c) && client_ping(c))
        ;
    if (c->ended)
        warnx("the server has disconnected after %lu pings", c->pings);
    rdma_disconnect(c->id);
    return !has_more(c);
}

/* ---- Server ---- */

/* Reads the client's text into ours. */
static bool take_text(struct connection *c, struct place source, size_t *size)
{
    *size = ntohl(source.size);
    if (*size == 0 || *size > sizeof c->text) {
        warnx("a text of %zu bytes is too long", *size);
        return false;
    }
    return post(c, READ, c->text, *size, c->text_mr, source) && await(c, READ);
}

static bool server_ping(struct connection *c)
{
    struct place source, sink;
    size_t size;
    if (!receive_message(c, &source))
        return false;
    if (!take_text(c, source, &size))
        goto broken;
    if (options.print)
        printf("server ping data: %.*s\n", (int)size, c->text);
    if (!send_message(c) || !receive_message(c, &sink))
        goto broken;
    if (size > ntohl(sink.size)) {
        warnx("the client has no room for its own text");
        return false;
    }
    if (!post(c, WRITE, c->text, size, c->text_mr, sink) || !await(c, WRITE) || !send_message(c))
        goto broken;
    c->pings++;
    return true;

broken:
    if (c->ended)
        warnx("the client has disconnected in the middle of ping %lu", c->pings);
    c->ended = false;
    return false;
}

/* A client that leaves between two pings has had what it wanted. */
static bool run_server(struct connection *c)
{
    struct rdma_conn_param param;
    if (!create_resources(c) || !post_receive(c)) {
        rdma_reject(c->id, NULL, 0);
        return false;
    }
    set_param(c, &param);
    if (rdma_accept(c->id, &param))
        return fail("rdma_accept");
    debug("accepted");
    while (has_more(c) && server_ping(c))
        ;
    if (c->ended)
        warnx("the client has disconnected after %lu pings", c->pings);
    bool good = c->ended || !has_more(c);
    /* With the last "go ahead" sent, it is for the client to end the connection. */
    if (good && !c->ended)
        await(c, RECEIVE);
    rdma_disconnect(c->id);
    return good;
}

static void *server_thread(void *c)
{
    run_server(c);
    fflush(stdout);
    destroy_connection(c);
    return NULL;
}

/* Clients until killed, a thread for each. */
static _Noreturn void serve_all(struct rdma_cm_id *listener)
{
    struct rdma_cm_id *id;
    pthread_t thread;
    for (;;) {
        if (rdma_get_request(listener, &id))
            err(1, "rdma_get_request");
        struct connection *c = create_connection(id);
        if (!c) {
            rdma_destroy_id(id);
            continue;
        }
        errno = pthread_create(&thread, NULL, server_thread, c);
        if (errno) {
            warn("pthread_create");
            destroy_connection(c);
            continue;
        }
        pthread_detach(thread);
    }
}

static bool serve_one(struct rdma_cm_id *listener)
{
    struct rdma_cm_id *id;
    if (rdma_get_request(listener, &id))
        err(1, "rdma_get_request");
    struct connection *c = create_connection(id);
    bool good = c && run_server(c);
    if (c)
        destroy_connection(c);
    else
        rdma_destroy_id(id);
    return good;
}

/* ---- Addresses and arguments ---- */

static struct addrinfo *look_up(const char *host, const char *port, int family, int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = family, .ai_flags = flags};
    struct addrinfo *list;
    int code = getaddrinfo(host, port, &hints, &list);
    if (code)
        errx(1, "%s, port %s: %s", host, port ? port : "any", gai_strerror(code));
    return list;
}

static struct rdma_cm_id *create_id(void)
{
    struct rdma_cm_id *id;
    if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
        err(1, "rdma_create_id");
    if (options.tos >= 0) {
        uint8_t tos = (uint8_t)options.tos;
        if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos))
            err(1, "type of service %d", options.tos);
    }
    return id;
}

static struct rdma_cm_id *listen_for_clients(void)
{
    struct rdma_cm_id *id = create_id();
    const char *address = options.address ? options.address : "0.0.0.0";
    struct addrinfo *ai = look_up(address, options.port, AF_UNSPEC, AI_PASSIVE);
    if (rdma_bind_addr(id, ai->ai_addr))
        err(1, "%s, port %s: rdma_bind_addr", address, options.port);
    if (rdma_listen(id, 64))
        err(1, "%s, port %s: rdma_listen", address, options.port);
    freeaddrinfo(ai);
    debug("listening");
    return id;
}

static struct rdma_cm_id *resolve_server(void)
{
    struct rdma_cm_id *id = create_id();
    struct addrinfo *ai = look_up(options.address, options.port, AF_UNSPEC, 0), *source = NULL;
    if (options.source)
        source = look_up(options.source, NULL, ai->ai_family, 0);
    if (rdma_resolve_addr(id, source ? source->ai_addr : NULL, ai->ai_addr, TIMEOUT_MS))
        err(1, "%s: rdma_resolve_addr", options.address);
    if (rdma_resolve_route(id, TIMEOUT_MS))
        err(1, "%s: rdma_resolve_route", options.address);
    if (source)
        freeaddrinfo(source);
    freeaddrinfo(ai);
    debug("address and route are resolved");
    return id;
}

static void parse(int argc, char *argv[])
{
    for (int c; (c = getopt(argc, argv, "a:I:Pp:C:S:t:scvVdq")) != -1;) {
        switch (c) {
        case 'a':
            options.address = optarg;
            break;
        case 'I':
            options.source = optarg;
            break;
        case 'P':
            options.persistent = true;
            break;
        case 'p':
            options.port = optarg;
            break;
        case 'C':
            options.count = number(optarg, 0, INT32_MAX);
            break;
        case 'S':
            options.size = number(optarg, MIN_SIZE, MAX_SIZE - 1);
            break;
        case 't':
            options.tos = (int)number(optarg, 0, 255);
            break;
        case 's':
            options.server = true;
            break;
        case 'c':
            options.client = true;
            break;
        case 'v':
            options.print = true;
            break;
        case 'V':
            options.validate = true;
            break;
        case 'd':
            options.debug = true;
            break;
        case 'q':
            options.own_qp = true;
            break;
        default:
            usage();
        }
    }
    if (optind != argc || options.server == options.client || (options.client && !options.address))
        usage();
}

int main(int argc, char *argv[])
{
    bool good;
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* both ends may write to one terminal: whole lines */
    parse(argc, argv);
    if (options.server) {
        struct rdma_cm_id *listener = listen_for_clients();
        if (options.persistent)
            serve_all(listener);
        good = serve_one(listener);
        rdma_destroy_id(listener);
    } else {
        struct rdma_cm_id *id = resolve_server();
        struct connection *c = create_connection(id);
        good = c && run_client(c);
        if (c)
            destroy_connection(c);
        else
            rdma_destroy_id(id);
    }
    return good ? 0 : 1;
}

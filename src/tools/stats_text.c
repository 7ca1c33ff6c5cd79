/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stats_text.h"

#include "tools/text.h"
#include "wire/error.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/* As adapters name them, behind iwIn and iwOut; what they do not have is named in their manner. */
static const struct {
    const char *name;
    size_t at;
} counters[] = {
#define FLOW(name, field)                                                                          \
    {                                                                                              \
        name, offsetof(struct iwc_flow, field)                                                     \
    }
    FLOW("RdmaSends", messages[IWC_KIND_SEND]),
    FLOW("RdmaSendBytes", bytes[IWC_KIND_SEND]),
    FLOW("RdmaWrites", messages[IWC_KIND_WRITE]),
    FLOW("RdmaWriteBytes", bytes[IWC_KIND_WRITE]),
    FLOW("RdmaReads", messages[IWC_KIND_READ]),
    FLOW("RdmaReadResponses", messages[IWC_KIND_READ_RESPONSE]),
    FLOW("RdmaReadBytes", bytes[IWC_KIND_READ_RESPONSE]),
    FLOW("RdmaAtomics", messages[IWC_KIND_ATOMIC]),
    FLOW("RdmaAtomicResponses", messages[IWC_KIND_ATOMIC_RESPONSE]),
    FLOW("RdmaImmediates", messages[IWC_KIND_IMMEDIATE]),
    FLOW("RdmaInvalidates", invalidates),
    FLOW("Fpdus", fpdus),
};
#define N_COUNTERS (sizeof(counters) / sizeof(counters[0]))

static const char *const gauges[] = {
#define X(name, text) #name,
    STATS_GAUGES(X)
#undef X
};

static uint64_t value(const struct iwc_flow *f, size_t i)
{
    return *(const uint64_t *)((const char *)f + counters[i].at);
}

const char *stats_state(const struct stats_qp *q)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return q->state < sizeof(names) / sizeof(names[0]) ? names[q->state] : "?";
}

const char *stats_type(const struct stats_qp *q)
{
    if (q->sq.kind & STATS_UD)
        return "UD";
    return q->sq.kind & STATS_UC ? "UC" : "RC";
}

const char *stats_device(const struct stats_qp *q)
{
    return q->sq.kind & STATS_ROCE ? "RoCE" : "iWARP";
}

static const char *stats_dial(const struct stats_qp *q)
{
    static const char *const names[] = {
#define X(name, text) text,
        STATS_DIALS(X)
#undef X
    };
    return q->sq.dial < STATS_DIAL_COUNT ? names[q->sq.dial] : "?";
}

static void endpoint(const uint8_t addr[16], uint16_t port, bool six, char text[STATS_ENDPOINT_MAX])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    inet_ntop(six ? AF_INET6 : AF_INET, addr, ip, sizeof(ip));
    snprintf(text, STATS_ENDPOINT_MAX, six ? "[%s]:%u" : "%s:%u", ip, port);
}

void stats_endpoint(const struct stats_qp *q, bool peer, char text[STATS_ENDPOINT_MAX])
{
    if (q->flags & STATS_LINKED)
        endpoint(peer ? q->peer : q->local, peer ? q->peer_port : q->local_port,
                 q->flags & STATS_IPV6, text);
    else
        strcpy(text, "-");
}

static void listens_at(const struct stats_listener *l, char text[STATS_ENDPOINT_MAX])
{
    endpoint(l->local, l->local_port, l->flags & STATS_IPV6, text);
}

static const char *life_name(const struct stats *s)
{
    static const char *const names[] = {
        [STATS_ALIVE] = "alive", [STATS_ENDED] = "ended", [STATS_UNKNOWN] = "unknown"};
    return s->exited ? "exited" : names[s->life];
}

static void time_text(uint64_t ns, char *text, size_t size)
{
    time_t t = (time_t)(ns / 1000000000);
    struct tm tm;
    if (!gmtime_r(&t, &tm) || !strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
        strcpy(text, "?");
}

/** Completions that nobody has polled yet. */
static uint32_t depth(const struct stats_cq *c)
{
    return c->tail - c->head;
}

static uint64_t sum(const uint64_t *n, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += n[i];
    return all;
}

/* ---- text ---- */

static bool counts_nothing(const struct iwc_flow *flow)
{
    size_t i = 0;
    while (i < N_COUNTERS && !value(flow, i))
        i++;
    return i == N_COUNTERS;
}

/** A line, unless all are 0. */
static void print_counters(FILE *f, const char *title, const char *prefix,
                           const struct iwc_flow *flow)
{
    if (counts_nothing(flow))
        return;
    fputs(title, f);
    for (size_t i = 0; i < N_COUNTERS; i++)
        if (value(flow, i))
            fprintf(f, " %s%s %" PRIu64, prefix, counters[i].name, value(flow, i));
    fputc('\n', f);
}

/** What another process wrote may hold what a terminal obeys. */
static void print_words(FILE *f, const char *s)
{
    for (; *s; s++)
        fputc((unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s, f);
}

/** Which directions go through rings in shared memory, one at least. */
static const char *stats_rings(const struct stats_qp *q)
{
    return !q->rq.ring ? "out" : !q->sq.ring ? "in" : "both";
}

/** Why a connection within a host goes over TCP. @return NULL if it does not */
static const char *stats_tcp(const struct stats_qp *q)
{
    static const char *const names[] = {
#define X(name, text) text,
        STATS_TCPS(X)
#undef X
    };
    if (q->sq.ring || q->rq.ring || !q->rq.tcp)
        return NULL;
    return q->rq.tcp < STATS_TCP_COUNT ? names[q->rq.tcp] : "?";
}

static const char *const drops[] = {
#define X(name, text) text,
    STATS_DROPS(X)
#undef X
};

static void print_datagrams(FILE *f, const struct stats_qp *q)
{
    if (q->sq.lost)
        fprintf(f, " lost %" PRIu64, q->sq.lost);
    if (sum(q->rq.dropped, STATS_DROP_COUNT))
        fputs(" dropped", f);
    for (size_t i = 0; i < STATS_DROP_COUNT; i++)
        if (q->rq.dropped[i])
            fprintf(f, " %s %" PRIu64, drops[i], q->rq.dropped[i]);
}

static void print_qp(FILE *f, const struct stats_qp *q)
{
    char local[STATS_ENDPOINT_MAX], peer[STATS_ENDPOINT_MAX];
    stats_endpoint(q, false, local);
    stats_endpoint(q, true, peer);
    fprintf(f, "  qp 0x%06" PRIx32 " state %s", q->qp_num, stats_state(q));
    if (q->flags & STATS_LINKED)
        fprintf(f, " local %s peer %s side %s mpa %u crc %s markers %s ird %u ord %u anywarp %s",
                local, peer, q->flags & STATS_INITIATOR ? "active" : "passive", q->rev,
                q->flags & STATS_CRC ? "on" : "off", q->flags & STATS_MARKERS ? "on" : "off",
                q->ird, q->ord, q->flags & STATS_ANYWARP ? "yes" : "no");
    if (q->sq.ring || q->rq.ring)
        fprintf(f, " rings %s", stats_rings(q));
    if (stats_tcp(q))
        fprintf(f, " rings none (%s)", stats_tcp(q));
    if (q->sq.dial)
        fprintf(f, " peer_qp 0x%06" PRIx32 " dial %s", q->sq.peer_qpn, stats_dial(q));
    if (q->tls.cipher[0]) {
        fputs(" tls ", f);
        print_words(f, q->tls.cipher);
        fputs(" identity \"", f);
        print_words(f, q->tls.identity);
        fputc('"', f);
    }
    fprintf(f, " type %s device %s", stats_type(q), stats_device(q));
    fprintf(f, " send_cq %" PRIu32 " recv_cq %" PRIu32, q->send_cq, q->recv_cq);
    if (q->sq.size)
        fprintf(f, " sq %" PRIu32 "/%" PRIu32, q->sq.used, q->sq.size);
    if (q->rq.size)
        fprintf(f, " rq %" PRIu32 "/%" PRIu32, q->rq.used, q->rq.size);
    if (q->rq.held)
        fprintf(f, " held %" PRIu32 " (%" PRIu32 " bytes)", q->rq.held, q->rq.held_bytes);
    print_datagrams(f, q);
    if (q->binds)
        fprintf(f, " iwRdmaBnd %" PRIu32, q->binds);
    fputc('\n', f);
    print_counters(f, "    in", "iwIn", &q->in);
    print_counters(f, "    out", "iwOut", &q->out);
    if (q->error)
        fprintf(f, "    cause %s\n", iw_err_info(q->error)->text);
}

static void print_listener(FILE *f, const struct stats_listener *l)
{
    char local[STATS_ENDPOINT_MAX];
    listens_at(l, local);
    fprintf(f, "  listener %s waiting %" PRIu32 "/%" PRIu32 "\n", local, l->waiting, l->backlog);
}

static void print_process(FILE *f, const struct stats *s)
{
    fprintf(f, "process %" PRIu32 " command ", s->owner.pid);
    print_words(f, s->head.command);
    fprintf(f, " state %s", life_name(s));
}

static void print_gauges(FILE *f, const struct stats *s)
{
    bool any = false;
    for (size_t i = 0; i < STATS_binds; i++) {
        if (s->head.gauge[i])
            fprintf(f, "%s %s %" PRId64, any ? "" : "  objects", gauges[i], s->head.gauge[i]);
        any |= s->head.gauge[i] != 0;
    }
    if (any)
        fputc('\n', f);
}

static void print_windows(FILE *f, const struct stats *s)
{
    if (!s->binds && !s->in.invalidates)
        return;
    fputs(" ", f);
    if (s->binds)
        fprintf(f, " iwRdmaBnd %" PRIu64, s->binds);
    if (s->in.invalidates)
        fprintf(f, " iwRdmaInv %" PRIu64, s->in.invalidates);
    fputc('\n', f);
}

static void print_error_lines(FILE *f, const struct stats *s)
{
    char when[32];
    for (size_t i = 0; i < s->nerrors; i++) {
        time_text(s->errors[i].at, when, sizeof(when));
        fprintf(f, "  error %s qp 0x%06" PRIx32 ": ", when, s->errors[i].qp_num);
        print_words(f, s->errors[i].text);
        fputc('\n', f);
    }
}

void stats_print(FILE *f, const struct stats *s)
{
    char when[32];
    time_text(s->head.began, when, sizeof(when));
    print_process(f, s);
    fprintf(f, " since %s release ", when);
    print_words(f, s->head.release);
    fputs(" devices ", f);
    print_words(f, s->head.devices);
    fputc('\n', f);
    print_gauges(f, s);
    print_counters(f, "  in", "iwIn", &s->in);
    print_counters(f, "  out", "iwOut", &s->out);
    print_windows(f, s);
    for (size_t i = 0; i < s->ncqs; i++)
        fprintf(f, "  cq %" PRIu32 " cqe %" PRIu32 " depth %" PRIu32 " completions %" PRIu32 "\n",
                s->cqs[i].id, s->cqs[i].cqe, depth(&s->cqs[i]), s->cqs[i].tail);
    for (size_t i = 0; i < s->nlisteners; i++)
        print_listener(f, &s->listeners[i]);
    for (size_t i = 0; i < s->nqps; i++)
        print_qp(f, &s->qps[i]);
    print_error_lines(f, s);
}

static void print_sum(FILE *f, const char *way, const struct iwc_flow *flow)
{
    uint64_t messages = sum(flow->messages, IWC_KINDS);
    if (messages)
        fprintf(f, " %s %" PRIu64 " messages %" PRIu64 " bytes", way, messages,
                sum(flow->bytes, IWC_KIND_DATA));
}

void stats_print_line(FILE *f, const struct stats *s)
{
    uint64_t connected = 0, held = 0, failed = 0, waiting = 0;
    for (size_t i = 0; i < s->nqps; i++) {
        connected += s->qps[i].state == IBV_QPS_RTS;
        failed += s->qps[i].error != 0;
        held += s->qps[i].rq.held;
    }
    for (size_t i = 0; i < s->nlisteners; i++)
        waiting += s->listeners[i].waiting;
    print_process(f, s);
    if (s->nqps)
        fprintf(f, " qp %zu connected %" PRIu64, s->nqps, connected);
    if (failed)
        fprintf(f, " failed %" PRIu64, failed);
    print_sum(f, "in", &s->in);
    print_sum(f, "out", &s->out);
    if (s->nlisteners)
        fprintf(f, " listeners %zu", s->nlisteners);
    if (waiting)
        fprintf(f, " waiting %" PRIu64, waiting);
    if (held)
        fprintf(f, " held %" PRIu64, held);
    if (s->head.gauge[STATS_errors])
        fprintf(f, " errors %" PRId64, s->head.gauge[STATS_errors]);
    fputc('\n', f);
}

void stats_print_errors(FILE *f, const struct stats *s)
{
    print_process(f, s);
    fputc('\n', f);
    print_error_lines(f, s);
}

/* ---- JSON ---- */

static void json_counters(FILE *f, const struct iwc_flow *in, const struct iwc_flow *out,
                          uint64_t binds)
{
    fputs("\"counters\": {", f);
    for (size_t i = 0; i < N_COUNTERS; i++)
        fprintf(f, "\"iwIn%s\": %" PRIu64 ", \"iwOut%s\": %" PRIu64 ", ", counters[i].name,
                value(in, i), counters[i].name, value(out, i));
    fprintf(f, "\"iwRdmaBnd\": %" PRIu64 ", \"iwRdmaInv\": %" PRIu64 "}", binds, in->invalidates);
}

static const char *json_bool(bool b)
{
    return b ? "true" : "false";
}

static void json_listener(FILE *f, const struct stats_listener *l)
{
    char local[STATS_ENDPOINT_MAX];
    listens_at(l, local);
    fprintf(f, "{\"local\": \"%s\", \"waiting\": %" PRIu32 ", \"backlog\": %" PRIu32 "}", local,
            l->waiting, l->backlog);
}

static void json_datagrams(FILE *f, const struct stats_qp *q)
{
    fprintf(f, "\"lost\": %" PRIu64 ", \"dropped\": {", q->sq.lost);
    for (size_t i = 0; i < STATS_DROP_COUNT; i++)
        fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "", drops[i], q->rq.dropped[i]);
    fputs("}, ", f);
}

static void json_qp(FILE *f, const struct stats_qp *q)
{
    char local[STATS_ENDPOINT_MAX], peer[STATS_ENDPOINT_MAX];
    fprintf(f, "{\"qpn\": %" PRIu32 ", \"type\": \"%s\", \"device\": \"%s\", \"state\": \"%s\", ",
            q->qp_num, stats_type(q), stats_device(q), stats_state(q));
    if (q->flags & STATS_LINKED) {
        stats_endpoint(q, false, local);
        stats_endpoint(q, true, peer);
        fprintf(f,
                "\"local\": \"%s\", \"peer\": \"%s\", \"active\": %s, \"mpa\": %u, \"crc\": %s, "
                "\"markers\": %s, \"p2p\": %s, \"ird\": %u, \"ord\": %u, \"anywarp\": %s, ",
                local, peer, json_bool(q->flags & STATS_INITIATOR), q->rev,
                json_bool(q->flags & STATS_CRC), json_bool(q->flags & STATS_MARKERS),
                json_bool(q->flags & STATS_P2P), q->ird, q->ord,
                json_bool(q->flags & STATS_ANYWARP));
        json_member(f, "rings", q->sq.ring || q->rq.ring ? stats_rings(q) : NULL);
        json_member(f, "no_rings", stats_tcp(q));
        json_member(f, "cipher", q->tls.cipher[0] ? q->tls.cipher : NULL);
        json_member(f, "identity", q->tls.cipher[0] ? q->tls.identity : NULL);
    }
    if (q->sq.dial)
        fprintf(f, "\"peer_qpn\": %" PRIu32 ", \"dial\": \"%s\", ", q->sq.peer_qpn, stats_dial(q));
    fprintf(f, "\"send_cq\": %" PRIu32 ", \"recv_cq\": %" PRIu32 ", \"cause\": ", q->send_cq,
            q->recv_cq);
    json_string(f, q->error ? iw_err_info(q->error)->text : NULL);
    fprintf(f,
            ", \"sq\": %" PRIu32 ", \"sq_size\": %" PRIu32 ", \"rq\": %" PRIu32
            ", \"rq_size\": %" PRIu32 ", \"held\": %" PRIu32 ", \"held_bytes\": %" PRIu32 ", ",
            q->sq.used, q->sq.size, q->rq.used, q->rq.size, q->rq.held, q->rq.held_bytes);
    if (q->sq.kind & STATS_UD)
        json_datagrams(f, q);
    json_counters(f, &q->in, &q->out, q->binds);
    fputc('}', f);
}

void stats_print_json(FILE *f, const struct stats *s)
{
    char when[32];
    time_text(s->head.began, when, sizeof(when));
    fprintf(f, "{\"pid\": %" PRIu32 ", \"command\": ", s->owner.pid);
    json_string(f, s->head.command);
    fprintf(f, ", \"state\": \"%s\", \"since\": \"%s\", \"release\": ", life_name(s), when);
    json_string(f, s->head.release);
    fputs(", \"devices\": ", f);
    json_string(f, s->head.devices);
    fputs(",\n  \"objects\": {", f);
    for (size_t i = 0; i < STATS_binds; i++)
        fprintf(f, "%s\"%s\": %" PRId64, i ? ", " : "", gauges[i], s->head.gauge[i]);
    fputs("},\n  ", f);
    json_counters(f, &s->in, &s->out, s->binds);
    fputs(",\n  \"cqs\": [", f);
    for (size_t i = 0; i < s->ncqs; i++)
        fprintf(f,
                "%s{\"id\": %" PRIu32 ", \"cqe\": %" PRIu32 ", \"depth\": %" PRIu32
                ", \"completions\": %" PRIu32 "}",
                i ? ", " : "", s->cqs[i].id, s->cqs[i].cqe, depth(&s->cqs[i]), s->cqs[i].tail);
    fputs("],\n  \"listeners\": [", f);
    for (size_t i = 0; i < s->nlisteners; i++) {
        fputs(i ? ", " : "", f);
        json_listener(f, &s->listeners[i]);
    }
    fputs("],\n  \"qps\": [", f);
    for (size_t i = 0; i < s->nqps; i++) {
        fputs(i ? ",\n    " : "", f);
        json_qp(f, &s->qps[i]);
    }
    fputs("],\n  \"errors\": [", f);
    for (size_t i = 0; i < s->nerrors; i++) {
        time_text(s->errors[i].at, when, sizeof(when));
        fprintf(f, "%s{\"at\": \"%s\", \"qpn\": %" PRIu32 ", \"text\": ", i ? ",\n    " : "", when,
                s->errors[i].qp_num);
        json_string(f, s->errors[i].text);
        fputc('}', f);
    }
    fputs("]}", f);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A record as text. */
#include "env/error_text.h"
#include "tools/recording.h"
#include "wire/bytes.h"
#include "wire/ddp.h"
#include "wire/error.h"
#include "wire/fpdu.h"
#include "wire/opcode.h"

#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000u

static const struct row {
    const char *call, *arguments;
} rows[RECORD_WHATS] = {
#define X(name, ring, call, arguments) [RECORD_##name] = {call, arguments},
    RECORD_LIST(X)
#undef X
};

/* ---- values ---- */

#define PICK(table, i)                                                                             \
    ((i) < sizeof(table) / sizeof((table)[0]) && (table)[i] ? (table)[i] : "unknown")

static const char *wr_opcode(uint64_t v)
{
    static const char *const names[] = {
        [IBV_WR_RDMA_WRITE] = "RDMA_WRITE",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA_WRITE_WITH_IMM",
        [IBV_WR_SEND] = "SEND",
        [IBV_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
        [IBV_WR_RDMA_READ] = "RDMA_READ",
        [IBV_WR_ATOMIC_CMP_AND_SWP] = "ATOMIC_CMP_AND_SWP",
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = "ATOMIC_FETCH_AND_ADD",
        [IBV_WR_LOCAL_INV] = "LOCAL_INV",
        [IBV_WR_BIND_MW] = "BIND_MW",
        [IBV_WR_SEND_WITH_INV] = "SEND_WITH_INV",
    };
    return PICK(names, v);
}

static const char *wc_opcode(uint64_t v)
{
    static const char *const names[] = {
        [IBV_WC_SEND] = "SEND",
        [IBV_WC_RDMA_WRITE] = "RDMA_WRITE",
        [IBV_WC_RDMA_READ] = "RDMA_READ",
        [IBV_WC_COMP_SWAP] = "COMP_SWAP",
        [IBV_WC_FETCH_ADD] = "FETCH_ADD",
        [IBV_WC_BIND_MW] = "BIND_MW",
        [IBV_WC_LOCAL_INV] = "LOCAL_INV",
        [IBV_WC_RECV] = "RECV",
        [IBV_WC_RECV_RDMA_WITH_IMM] = "RECV_RDMA_WITH_IMM",
    };
    return PICK(names, v);
}

static const char *status(uint64_t v)
{
    static const char *const names[] = {
#define N(name) [IBV_WC_##name] = #name
        N(SUCCESS),          N(LOC_LEN_ERR),       N(LOC_QP_OP_ERR),     N(LOC_EEC_OP_ERR),
        N(LOC_PROT_ERR),     N(WR_FLUSH_ERR),      N(MW_BIND_ERR),       N(BAD_RESP_ERR),
        N(LOC_ACCESS_ERR),   N(REM_INV_REQ_ERR),   N(REM_ACCESS_ERR),    N(REM_OP_ERR),
        N(RETRY_EXC_ERR),    N(RNR_RETRY_EXC_ERR), N(LOC_RDD_VIOL_ERR),  N(REM_INV_RD_REQ_ERR),
        N(REM_ABORT_ERR),    N(INV_EECN_ERR),      N(INV_EEC_STATE_ERR), N(FATAL_ERR),
        N(RESP_TIMEOUT_ERR), N(GENERAL_ERR),
#undef N
    };
    return PICK(names, v);
}

static const char *event(uint64_t v)
{
    static const char *const names[] = {
#define N(name) [IBV_EVENT_##name] = #name
        N(CQ_ERR),
        N(QP_FATAL),
        N(QP_REQ_ERR),
        N(QP_ACCESS_ERR),
        N(COMM_EST),
        N(SQ_DRAINED),
        N(PATH_MIG),
        N(PATH_MIG_ERR),
        N(DEVICE_FATAL),
        N(PORT_ACTIVE),
        N(PORT_ERR),
        N(LID_CHANGE),
        N(PKEY_CHANGE),
        N(SM_CHANGE),
        N(SRQ_ERR),
        N(SRQ_LIMIT_REACHED),
        N(QP_LAST_WQE_REACHED),
        N(CLIENT_REREGISTER),
        N(GID_CHANGE),
#undef N
    };
    return PICK(names, v);
}

static const char *state(uint64_t v)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return PICK(names, v);
}

static const char *type(uint64_t v)
{
    static const char *const names[] = {
        [IBV_QPT_RC] = "RC", [IBV_QPT_UC] = "UC", [IBV_QPT_UD] = "UD"};
    return PICK(names, v);
}

/** What a program gave may have anything in it. */
static void print_name(FILE *f, const char *text, size_t size)
{
    for (size_t i = 0; i < size && text[i]; i++)
        fputc(isprint((unsigned char)text[i]) ? text[i] : '?', f);
}

static void print_connection(FILE *f, const struct recording *r, uint32_t id)
{
    char local[64], peer[64];
    const struct record_conn *c = recording_conn(r, id);
    if (!c) {
        fprintf(f, "connection %u", id);
        return;
    }
    recording_address(c, false, local, sizeof(local));
    recording_address(c, true, peer, sizeof(peer));
    fprintf(f, "%s with %s", local, peer);
}

static void print_value(FILE *f, const struct recording *r, char how, uint64_t v)
{
    switch (how) {
    case 'u':
        fprintf(f, "%" PRIu64, v);
        break;
    case 'd':
        fprintf(f, "%d", (int)v);
        break;
    case 'q':
        fprintf(f, "0x%06" PRIx64, v);
        break;
    case 'i':
        fputs(v < IW_ERR_COUNT ? iw_err_info((enum iw_err)v)->text : "unknown", f);
        break;
    case 'o':
        fputs(wr_opcode(v), f);
        break;
    case 'w':
        fputs(wc_opcode(v), f);
        break;
    case 'c':
        fputs(status(v), f);
        break;
    case 's':
        fputs(state(v), f);
        break;
    case 't':
        fputs(type(v), f);
        break;
    case 'a':
        fputs(v > INT32_MAX ? "none" : event(v), f);
        break;
    case 'k':
        print_connection(f, r, (uint32_t)v);
        break;
    default:
        fprintf(f, "0x%" PRIx64, v);
        break;
    }
}

static void print_arguments(FILE *f, const struct recording *r, const struct record_event *e)
{
    const char *text = rows[e->what].arguments;
    unsigned n = 0;
    for (; *text; text++) {
        if (*text != '%') {
            fputc(*text, f);
        } else if (*++text == 'n') {
            print_name(f, e->text, sizeof(e->text));
        } else {
            print_value(f, r, *text, n < RECORD_ARGS ? e->arg[n] : 0);
            n++;
        }
    }
}

static void print_result(FILE *f, const struct record_event *e)
{
    char text[IW_ERROR_TEXT_MAX];
    if (e->flags & RECORD_OPEN) {
        fputs(" ... has not returned", f);
    } else if (e->result == ECANCELED) {
        fputs(" = not posted", f);
    } else if (e->result) {
        iw_error_text(e->result, text);
        fprintf(f, " = %s", text);
    }
}

/* ---- the wire ---- */

/** The first bytes of an FPDU without the markers that are due. @return how many */
static uint32_t without_markers(const struct recording *r, const struct record_event *e,
                                uint8_t out[RECORD_BYTES])
{
    const struct record_frame *fr = &e->frame;
    const struct record_conn *c = recording_conn(r, fr->conn);
    bool is_out = e->flags & RECORD_OUT;
    bool markers = c && c->start[!is_out].len && c->start[is_out].len &&
                   (c->start[!is_out].bytes[16] & MPA_FLAG_M);
    uint32_t at = markers ? fr->position - c->start[is_out].len : 1, n = 0;
    for (uint32_t i = 0; i < recording_kept(fr); i++, at++)
        if (!markers || at % FPDU_MARKER_PERIOD >= FPDU_MARKER)
            out[n++] = fr->bytes[i];
    return n;
}

static void print_read_request(FILE *f, const uint8_t *payload)
{
    struct rdmap_read_request q;
    rdmap_read_request_decode(payload, &q);
    fprintf(f, " size %u source STag 0x%08x TO 0x%" PRIx64 " sink STag 0x%08x TO 0x%" PRIx64,
            q.size, q.source_stag, q.source_to, q.sink_stag, q.sink_to);
}

static void print_fpdu(FILE *f, const struct recording *r, const struct record_event *e)
{
    uint8_t bytes[RECORD_BYTES] = {0};
    struct ddp_seg s;
    uint32_t n = without_markers(r, e, bytes);
    uint32_t ulpdu = get_be16(bytes);
    /* What the decoder looks at is a part of what is kept, whatever the length says. */
    enum iw_err err = n < FPDU_LEN_FIELD + DDP_UNTAGGED_HDR && n < fpdu_size(ulpdu)
                          ? IW_ERR_FRAMING
                          : ddp_decode(bytes + FPDU_LEN_FIELD, ulpdu, &s);
    if (err != IW_OK) {
        fprintf(f, "FPDU of %u bytes: %s", e->frame.len, iw_err_info(err)->text);
        return;
    }
    fprintf(f, "%s", rdmap_ops[s.opcode].name);
    if (s.tagged)
        fprintf(f, " STag 0x%08x TO 0x%" PRIx64, s.stag, s.to);
    else
        fprintf(f, " MSN %u MO %u", s.msn, s.mo);
    if (rdmap_ops[s.opcode].invalidate)
        fprintf(f, " invalidates STag 0x%08x", s.inval_stag);
    if (s.opcode == RDMAP_READ_REQUEST)
        print_read_request(f, s.payload);
    fprintf(f, " length %u%s", s.len, s.last ? " last" : "");
}

static void print_frame(FILE *f, const struct recording *r, const struct record_event *e)
{
    char local[64] = "?", peer[64] = "?";
    bool is_out = e->flags & RECORD_OUT;
    const struct record_conn *c = recording_conn(r, e->frame.conn);
    if (c) {
        recording_address(c, false, local, sizeof(local));
        recording_address(c, true, peer, sizeof(peer));
    }
    fprintf(f, "%s %s > %s ", is_out ? "out" : "in", is_out ? local : peer, is_out ? peer : local);
    if (e->frame.qp_num)
        fprintf(f, "QP 0x%06x ", e->frame.qp_num);
    if (e->flags & RECORD_FIN)
        fputs("FIN", f);
    else if (e->flags & RECORD_RESET)
        fputs("RST", f);
    else if (e->flags & RECORD_OTHER)
        fprintf(f, "%u bytes that are no whole FPDU", e->frame.len);
    else if (e->flags & RECORD_START)
        fprintf(f, "MPA %.3s, private data %u",
                e->frame.len > 11 ? (const char *)e->frame.bytes + 7 : "?",
                e->frame.len - MPA_START_HDR);
    else
        print_fpdu(f, r, e);
}

/* ---- all of it ---- */

static void print_time(FILE *f, uint64_t ns, const char *format)
{
    char text[64] = "?";
    struct tm tm;
    time_t s = (time_t)(ns / NS_PER_S);
    if (localtime_r(&s, &tm))
        strftime(text, sizeof(text), format, &tm);
    fputs(text, f);
}

static void print_event(FILE *f, const struct recording *r, const struct record_event *e)
{
    uint64_t ns = recording_time(r, e->ns);
    print_time(f, ns, "%H:%M:%S");
    fprintf(f, ".%09u %7u  ", (unsigned)(ns % NS_PER_S), e->thread);
    if (e->what == RECORD_FRAME) {
        print_frame(f, r, e);
    } else {
        fprintf(f, "%s%s", rows[e->what].call, *rows[e->what].call ? " " : "");
        print_arguments(f, r, e);
        print_result(f, e);
    }
    fputc('\n', f);
}

static void print_ring(FILE *f, const struct recording *r, enum record_ring_of ring,
                       const char *name)
{
    const struct record_ring *g = &r->page->ring[ring];
    fprintf(f, "%s%" PRIu64, name, g->next);
    if (g->next > RECORD_EVENTS)
        fprintf(f, ", the last %u", RECORD_EVENTS);
    if (g->lost)
        fprintf(f, ", %" PRIu64 " lost", g->lost);
}

void recording_print(FILE *f, const struct recording *r)
{
    const struct record_head *h = &r->page->head;
    fprintf(f, "process %u, ", h->pid);
    print_name(f, h->command, sizeof(h->command));
    fputs(", on anywarp ", f);
    print_name(f, h->release, sizeof(h->release));
    fputs(", recorded from ", f);
    print_time(f, h->realtime, "%Y-%m-%d %H:%M:%S");
    fprintf(f, "\n%s\n",
            r->running  ? "it runs"
            : h->exited ? "it ended by exit()"
                        : "it did not end by exit(): it crashed, was killed, or left by _exit()");
    print_ring(f, r, RECORD_VERBS, "events of the verbs: ");
    print_ring(f, r, RECORD_CM, "; of the connection manager: ");
    print_ring(f, r, RECORD_WIRE, "; frames: ");
    if (r->unfinished)
        fprintf(f, "; %zu were being written", r->unfinished);
    fputs("\n\n", f);
    for (size_t i = 0; i < r->n; i++)
        print_event(f, r, r->events[i]);
}

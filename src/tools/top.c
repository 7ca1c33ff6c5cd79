/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/screen.h"
#include "tools/stats_text.h"
#include "tools/tool.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DELAY_MAX  3600.0
#define HEAD_LINES 3 /* summary, blank, titles */
#define ALL_ROWS   INT32_MAX

/** Rates of one QP, or the sum of several, a second. */
struct rates {
    double in_bytes, out_bytes, in_messages, out_messages;
};

struct row {
    const struct stats *s;
    const struct stats_qp *q;
    struct rates rates;
};

static uint64_t sum(const uint64_t *n, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += n[i];
    return all;
}

static double rate(const uint64_t *now, const uint64_t *before, size_t count, double seconds)
{
    uint64_t a = sum(now, count), b = before ? sum(before, count) : 0;
    return a > b ? (double)(a - b) / seconds : 0;
}

/** @param before  NULL: there was none, and it began at 0 */
static struct rates rates_of(const struct iwc_flow *in, const struct iwc_flow *in_before,
                             const struct iwc_flow *out, const struct iwc_flow *out_before,
                             double seconds)
{
    return (struct rates){
        .in_bytes = rate(in->bytes, in_before ? in_before->bytes : NULL, IWC_KIND_DATA, seconds),
        .out_bytes =
            rate(out->bytes, out_before ? out_before->bytes : NULL, IWC_KIND_DATA, seconds),
        .in_messages =
            rate(in->messages, in_before ? in_before->messages : NULL, IWC_KINDS, seconds),
        .out_messages =
            rate(out->messages, out_before ? out_before->messages : NULL, IWC_KINDS, seconds),
    };
}

static const struct stats *same_process(const struct stats_set *set, const struct stats *s)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct stats_owner *o = &set->process[i].owner;
        if (o->pid == s->owner.pid && o->start == s->owner.start && o->ns == s->owner.ns)
            return &set->process[i];
    }
    return NULL;
}

static const struct stats_qp *same_qp(const struct stats *s, const struct stats_qp *q)
{
    for (size_t i = 0; s && i < s->nqps; i++)
        if (s->qps[i].qp_num == q->qp_num)
            return &s->qps[i];
    return NULL;
}

static double weight(const struct row *r)
{
    return r->rates.in_bytes + r->rates.out_bytes + r->rates.in_messages + r->rates.out_messages;
}

/** Busiest first, then by process and number, so that idle ones keep their places. */
static int by_weight(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (weight(x) != weight(y))
        return weight(x) < weight(y) ? 1 : -1;
    if (x->s->owner.pid != y->s->owner.pid)
        return x->s->owner.pid < y->s->owner.pid ? -1 : 1;
    return x->q->qp_num < y->q->qp_num ? -1 : x->q->qp_num > y->q->qp_num;
}

/** A number in at most 6 columns. */
static const char *short_number(double n, char text[16])
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};
    size_t u = 0;
    for (; n >= 9999.5 && u + 1 < sizeof(units) / sizeof(units[0]); u++)
        n /= 1000;
    snprintf(text, 16, n < 10 && u ? "%.1f%s" : "%.0f%s", n, units[u]);
    return text;
}

static void print_row(const struct row *r, unsigned columns)
{
    char peer[STATS_ENDPOINT_MAX], n[4][16], line[256], command[16] = "";
    const char *c = r->s->head.command;
    for (size_t i = 0; c[i] && i < sizeof(command) - 1; i++)
        command[i] = isprint((unsigned char)c[i]) ? c[i] : '?';
    stats_endpoint(r->q, true, peer);
    snprintf(line, sizeof(line),
             "%7" PRIu32 " %-15s 0x%06" PRIx32 " %-4s %-6s %-5s %-24s %7s %7s %7s %7s",
             r->s->owner.pid, command, r->q->qp_num, stats_type(r->q), stats_device(r->q),
             stats_state(r->q), peer, short_number(r->rates.in_messages, n[0]),
             short_number(r->rates.in_bytes, n[1]), short_number(r->rates.out_messages, n[2]),
             short_number(r->rates.out_bytes, n[3]));
    screen_line(line, columns);
}

static size_t count_qps(const struct stats_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        n += set->process[i].nqps;
    return n;
}

static void print_summary(const struct stats_set *now, const struct stats_set *before,
                          double seconds, unsigned columns)
{
    struct rates all = {0};
    int64_t errors = 0;
    char n[4][16], line[256];
    for (size_t i = 0; i < now->n; i++) {
        const struct stats *s = &now->process[i], *old = same_process(before, s);
        struct rates r =
            rates_of(&s->in, old ? &old->in : NULL, &s->out, old ? &old->out : NULL, seconds);
        all.in_bytes += r.in_bytes;
        all.out_bytes += r.out_bytes;
        all.in_messages += r.in_messages;
        all.out_messages += r.out_messages;
        errors += s->head.gauge[STATS_errors];
    }
    snprintf(line, sizeof(line),
             "anywarp: %zu processes, %zu QPs, %" PRId64
             " errors; a second in: %s messages, %s bytes, out: %s messages, %s bytes",
             now->n, count_qps(now), errors, short_number(all.in_messages, n[0]),
             short_number(all.in_bytes, n[1]), short_number(all.out_messages, n[2]),
             short_number(all.out_bytes, n[3]));
    screen_line(line, columns);
}

static void print_table(const struct stats_set *now, const struct stats_set *before, double seconds,
                        unsigned lines, unsigned columns)
{
    size_t n = 0, max = count_qps(now);
    struct row *rows = calloc(max + 1, sizeof(*rows));
    if (!rows)
        tool_die(TOOL_FAILED, "no memory");
    for (size_t i = 0; i < now->n; i++) {
        const struct stats *s = &now->process[i], *old = same_process(before, s);
        for (size_t k = 0; k < s->nqps; k++) {
            const struct stats_qp *q = &s->qps[k], *oldq = same_qp(old, q);
            rows[n++] = (struct row){s, q,
                                     rates_of(&q->in, oldq ? &oldq->in : NULL, &q->out,
                                              oldq ? &oldq->out : NULL, seconds)};
        }
    }
    qsort(rows, n, sizeof(*rows), by_weight);
    print_summary(now, before, seconds, columns);
    screen_line("", columns);
    screen_line(
        "    PID COMMAND         QP       TYPE DEVICE STATE PEER                       in/s "
        "   in B/s  out/s   out B/s",
        columns);
    for (size_t i = 0; i < n && i + HEAD_LINES < lines; i++)
        print_row(&rows[i], columns);
    free(rows);
}

static double seconds_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void once(double delay)
{
    struct stats_choice choice = {0};
    struct stats_set before, now;
    double start = seconds_now();
    stats_read_all(&before, &choice);
    nanosleep(&(struct timespec){.tv_sec = (time_t)delay,
                                 .tv_nsec = (long)((delay - (double)(time_t)delay) * 1e9)},
              NULL);
    stats_read_all(&now, &choice);
    print_table(&now, &before, seconds_now() - start, ALL_ROWS, 0);
    stats_free(&before);
    stats_free(&now);
}

static void watch(double delay)
{
    struct stats_choice choice = {0};
    struct stats_set before, now;
    double start = seconds_now(), first = delay < 0.2 ? delay : 0.2;
    stats_read_all(&before, &choice);
    screen_open();
    for (bool go_on = screen_wait(first); go_on; go_on = screen_wait(delay)) {
        unsigned lines, columns;
        stats_read_all(&now, &choice);
        double end = seconds_now();
        screen_begin(&lines, &columns);
        print_table(&now, &before, end - start, lines, columns);
        screen_end();
        stats_free(&before);
        before = now;
        start = end;
    }
    screen_close();
    stats_free(&before);
}

static int top(int argc, char **argv)
{
    static const struct option options[] = {
        {"delay", required_argument, NULL, 'd'}, {"once", no_argument, NULL, '1'}, {0}};
    double delay = 1;
    bool single = !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
    for (int c; (c = getopt_long(argc, argv, "1d:", options, NULL)) != -1;) {
        char *end;
        if (c == '?')
            return TOOL_USAGE;
        single |= c == '1';
        if (c != 'd')
            continue;
        delay = strtod(optarg, &end);
        if (end == optarg || *end || !(delay >= 0.1 && delay <= DELAY_MAX))
            tool_die(TOOL_USAGE, "top: %s: the delay is 0.1 to 3600 seconds", optarg);
    }
    if (argv[optind])
        tool_die(TOOL_USAGE, "top takes no argument");
    (single ? once : watch)(delay);
    return 0;
}

const struct tool tool_top = {
    .name = "top",
    .arguments = "[--delay SECONDS] [--once]",
    .summary = "the busiest connections now, with messages and bytes a second",
    .help = "Shows the connections of the processes of this user that run on anywarp, the\n"
            "busiest first, with messages and bytes a second in and out. q ends it. If the\n"
            "output is no terminal, the table is printed once.\n"
            "\n"
            "  -d, --delay SECONDS   between two looks, 0.1 to 3600, default 1\n"
            "  -1, --once            print the table once\n",
    .run = top,
};

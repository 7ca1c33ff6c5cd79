/* SPDX-License-Identifier: BSD-2-Clause */
/* The faults of faults/stream.c over a stream in memory; each in a process of its own, as the knobs
 * are read once. */
#include "conn/stream_mem.h"
#include "faults/stream.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES (1 << 19) /* more than any fault waits for */
#define STEPS (1 << 21)

static struct iwc_stream_mem *pair[2];
static uint8_t out[BYTES], in[BYTES];

struct run {
    size_t sent, got;
    unsigned changed;           /* bytes that are not what was sent */
    bool pieces;                /* not all that was there was got at once */
    ssize_t send_end, recv_end; /* what the last calls returned */
};

/** Sends all from one end to the other, one of which has faults. */
static struct run transfer(bool faulty_sender)
{
    struct run r = {0};
    assert_int_equal(iwc_stream_mem_pair(pair, SIZE_MAX, 1 << 16), 0);
    struct iwc_stream *a = iwc_stream_mem_stream(pair[0]), *b = iwc_stream_mem_stream(pair[1]);
    iw_chaos_attach(faulty_sender ? a : b);
    for (size_t i = 0; i < BYTES; i++)
        out[i] = (uint8_t)(i * 7 + i / 251);
    for (int i = 0; i < STEPS && r.got < BYTES; i++) {
        struct iovec v[2] = {{out + r.sent, (BYTES - r.sent) / 2},
                             {out + r.sent + (BYTES - r.sent) / 2, (BYTES - r.sent + 1) / 2}};
        r.send_end = r.sent < BYTES ? a->ops->send(a, v, 2) : -EAGAIN;
        if (r.send_end > 0)
            r.sent += (size_t)r.send_end;
        r.pieces |= r.send_end > 0 && r.send_end < 4096 && r.sent < BYTES;
        r.recv_end = b->ops->recv(b, in + r.got, BYTES - r.got);
        if (r.recv_end > 0)
            r.got += (size_t)r.recv_end;
        r.pieces |= r.recv_end > 0 && r.recv_end < 4096 && r.got < BYTES;
        if (r.recv_end == 0 || (r.recv_end < 0 && r.recv_end != -EAGAIN))
            break;
    }
    for (size_t i = 0; i < r.got; i++)
        r.changed += in[i] != out[i];
    a->ops->close(a, 0);
    b->ops->close(b, 0);
    iwc_stream_mem_free(pair);
    return r;
}

static bool as_it_was(struct run r)
{
    return r.got == BYTES && !r.changed && !r.pieces;
}

static bool in_pieces(struct run r)
{
    return r.got == BYTES && !r.changed && r.pieces;
}

static bool corrupt(struct run r)
{
    return r.got == BYTES && r.changed == 1;
}

static bool ended(struct run r)
{
    return r.got < BYTES && !r.changed && r.recv_end == 0;
}

static bool reset(struct run r)
{
    return r.got < BYTES && !r.changed && r.recv_end == -ECONNRESET;
}

static bool send_failed(struct run r)
{
    return r.got < BYTES && !r.changed && r.send_end == -EPIPE;
}

static bool silent(struct run r)
{
    return r.got < BYTES && !r.changed && r.recv_end == -EAGAIN;
}

/* Seeds by which the cut is where the row wants it are found, not known. */
static const struct {
    const char *fault;
    bool sender;
    bool (*as_wanted)(struct run);
    bool some; /* seeds only */
} rows[] = {
    {"late", false, as_it_was, false},       {"late", true, as_it_was, false},
    {"short_read", false, in_pieces, false}, {"short_write", true, in_pieces, false},
    {"slow_peer", false, in_pieces, false},  {"slow_peer", true, in_pieces, false},
    {"corrupt", false, corrupt, false},      {"cut_fin", false, ended, true},
    {"cut_rst", false, reset, true},         {"cut_fin", true, send_failed, true},
    {"cut_rst", true, send_failed, true},    {"silence", false, silent, false},
    {"silence", true, silent, false},
};

#define SEEDS 16

static int child(size_t row, unsigned seed)
{
    char text[100];
    snprintf(text, sizeof(text), "seed=%u,every=1,only=%s", seed, rows[row].fault);
    setenv("ANYWARP_CHAOS", text, 1);
    return !rows[row].as_wanted(transfer(rows[row].sender));
}

static void each_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned good = 0;
        for (unsigned seed = 0; seed < SEEDS; seed++) {
            int status;
            pid_t pid = fork();
            if (pid == 0)
                _exit(child(i, seed));
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_true(WIFEXITED(status));
            good += status == 0;
        }
        if (good < (rows[i].some ? 1 : SEEDS))
            fail_msg("%s of the %s: %u of %u seeds", rows[i].fault,
                     rows[i].sender ? "sender" : "receiver", good, SEEDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

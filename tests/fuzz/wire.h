/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The byte stream between a victim and a fuzzer, and the fuzzer's view of it: what the victim sends
 * must be FPDUs without fault, and nothing behind a Terminate.
 */
#ifndef ANYWARP_TESTS_FUZZ_WIRE_H
#define ANYWARP_TESTS_FUZZ_WIRE_H

#include "conn/nego.h"
#include "conn/rx.h"
#include "conn/stream.h"
#include "fuzz/fuzz.h"
#include "wire/fpdu.h"

#define WIRE_REQUESTS 256

/** A read or atomic of the victim that waits for its answer. */
struct wire_request {
    bool atomic;
    uint32_t id, stag, size;
    uint64_t to;
};

struct wire {
    struct iwc_stream base;
    /* To the victim. */
    uint8_t in[1 << 19];
    size_t in_len, in_at;
    bool fin, reset;
    size_t in_chunk; /* most bytes of a recv */
    /* From the victim. */
    uint8_t out[1 << 20];
    size_t out_len;
    bool stuck; /* TCP is full */
    bool shut, closed;
    size_t out_chunk; /* most bytes of a send */
    /* The fuzzer's side of the stream. */
    struct iwc_rx rx;
    bool markers;
    uint64_t unmarked;
    bool terminated;
    uint32_t msn[DDP_QN_COUNT]; /* of the next message to the victim */
    struct wire_request requests[WIRE_REQUESTS];
    unsigned first, nrequests;
    int forbidden; /* no Read Response may hold this byte; -1: any may */
};

void wire_init(struct wire *w, const struct mpa_result *agreed, int forbidden);

/** Whether a recv would bring something. */
bool wire_readable(const struct wire *w);

/** Bytes as they are. What there is no room for is dropped. */
void wire_raw(struct wire *w, const uint8_t *p, size_t len);

/** One FPDU with the right length, pad and CRC. */
void wire_ulpdu(struct wire *w, const uint8_t *p, size_t len);

/** Reads what the victim has sent, and checks it. */
void wire_read(struct wire *w);

#endif

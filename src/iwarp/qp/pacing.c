/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/pacing.h"

static uint64_t enough(const struct iw_pace_facts *f)
{
    return f->acked && f->cheap ? IW_PACE_PIECE : f->quantum;
}

enum iw_pace iw_pace_post(const struct iw_pace_facts *f)
{
    bool waits = !iw_pace_is_awaited(f) && !f->single && f->polled && f->unsent < enough(f);
    return waits ? IW_PACE_DEFER : IW_PACE_SEND;
}

/** Only the one QP that its thread moves bytes of may stream: each that is corked has a batch. */
static bool streams(const struct iw_pace_facts *f)
{
    return f->polled && !f->busy && !f->heard && f->quiet >= IW_PACE_STREAM_MIN &&
           f->quantum == IW_PACE_QUANTUM_MAX;
}

struct iw_paced iw_pace_pass(const struct iw_pace_facts *f, uint64_t now)
{
    struct iw_paced p = {.what = IW_PACE_SEND, .stream = streams(f)};
    if (!p.stream || f->uncut == 0 || f->posted < 2)
        return p;
    /* Another thread may have been here with a later time. */
    if ((int64_t)(now - f->corked_since) <= IW_PACE_CORK_NS)
        p.what = IW_PACE_CORK;
    else
        p.ends = f->corked < IW_PACE_CORK_MIN;
    return p;
}

uint64_t iw_pace_quantum(uint64_t alone)
{
    return alone < IW_PACE_QUANTUM_MAX ? IW_PACE_QUANTUM_MIN : IW_PACE_QUANTUM_MAX;
}

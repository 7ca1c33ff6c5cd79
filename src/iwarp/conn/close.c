/* SPDX-License-Identifier: BSD-2-Clause */
/* How an iWARP stream ends: the table. */
#include "conn/close.h"

#define STATE_COUNT (IWC_CLOSE_CLOSED + 1)
#define EVENT_COUNT (IWC_CLOSE_EV_EXPIRED + 1)

/* clang-format off */
#define DO(what, to) {.actions = (what), .next = IWC_CLOSE_##to}
#define GO(to) {.actions = IWC_CLOSE_NOTHING, .next = IWC_CLOSE_##to}
#define NEVER(in) {.actions = IWC_CLOSE_ILLEGAL, .next = IWC_CLOSE_##in}

#define TELL IWC_CLOSE_SEND_TERM
#define FIN IWC_CLOSE_SEND_FIN
#define RELEASE IWC_CLOSE_RELEASE
#define RESET (IWC_CLOSE_RELEASE | IWC_CLOSE_RESET)
#define FAIL IWC_CLOSE_FAIL

/*
 * The first cause wins: after it, further errors change nothing. A peer's FIN that comes before
 * our own moves to PEER_FIN, where nobody waits for a second one: ours goes out with the release,
 * which is the owner's to put behind the news of the end. A stream is reset only where bytes of
 * ours could not be sent in time; the owner resets one in DRAIN as well whose peer takes none.
 */
static const struct iwc_close_step steps[STATE_COUNT][EVENT_COUNT] = {
    [IWC_CLOSE_OPEN] = {
        [IWC_CLOSE_EV_ASK] = GO(FLUSHING),
        [IWC_CLOSE_EV_ERROR] = DO(TELL | FAIL, TERM),
        [IWC_CLOSE_EV_SENT] = NEVER(OPEN),
        [IWC_CLOSE_EV_FIN] = DO(FAIL, PEER_FIN),
        [IWC_CLOSE_EV_PEER_TERM] = DO(FAIL | FIN, DRAIN),
        [IWC_CLOSE_EV_LOST] = DO(FAIL | RELEASE, CLOSED),
        [IWC_CLOSE_EV_EXPIRED] = NEVER(OPEN),
    },
    [IWC_CLOSE_FLUSHING] = {
        [IWC_CLOSE_EV_ASK] = GO(FLUSHING),
        [IWC_CLOSE_EV_ERROR] = DO(TELL | FAIL, TERM),
        [IWC_CLOSE_EV_SENT] = DO(FAIL | FIN, DRAIN),
        [IWC_CLOSE_EV_FIN] = DO(FAIL, PEER_FIN),
        [IWC_CLOSE_EV_PEER_TERM] = DO(FAIL | FIN, DRAIN),
        [IWC_CLOSE_EV_LOST] = DO(FAIL | RELEASE, CLOSED),
        [IWC_CLOSE_EV_EXPIRED] = DO(FAIL | RESET, CLOSED),
    },
    [IWC_CLOSE_TERM] = {
        [IWC_CLOSE_EV_ASK] = GO(TERM),
        [IWC_CLOSE_EV_ERROR] = GO(TERM),
        [IWC_CLOSE_EV_SENT] = DO(FIN, DRAIN),
        [IWC_CLOSE_EV_FIN] = GO(PEER_FIN),
        [IWC_CLOSE_EV_PEER_TERM] = DO(FIN, DRAIN),
        [IWC_CLOSE_EV_LOST] = DO(RELEASE, CLOSED),
        [IWC_CLOSE_EV_EXPIRED] = DO(RESET, CLOSED),
    },
    [IWC_CLOSE_DRAIN] = {
        [IWC_CLOSE_EV_ASK] = GO(DRAIN),
        [IWC_CLOSE_EV_ERROR] = GO(DRAIN),
        [IWC_CLOSE_EV_SENT] = NEVER(DRAIN),
        [IWC_CLOSE_EV_FIN] = DO(RELEASE, CLOSED),
        [IWC_CLOSE_EV_PEER_TERM] = GO(DRAIN),
        [IWC_CLOSE_EV_LOST] = DO(RELEASE, CLOSED),
        [IWC_CLOSE_EV_EXPIRED] = DO(RELEASE, CLOSED),
    },
    [IWC_CLOSE_PEER_FIN] = {
        [IWC_CLOSE_EV_ASK] = GO(PEER_FIN),
        [IWC_CLOSE_EV_ERROR] = GO(PEER_FIN),
        [IWC_CLOSE_EV_SENT] = DO(RELEASE, CLOSED),
        [IWC_CLOSE_EV_FIN] = NEVER(PEER_FIN),
        [IWC_CLOSE_EV_PEER_TERM] = DO(RELEASE, CLOSED),
        [IWC_CLOSE_EV_LOST] = DO(RELEASE, CLOSED),
        [IWC_CLOSE_EV_EXPIRED] = DO(RESET, CLOSED),
    },
    [IWC_CLOSE_CLOSED] = {
        [IWC_CLOSE_EV_ASK] = GO(CLOSED),
        [IWC_CLOSE_EV_ERROR] = GO(CLOSED),
        [IWC_CLOSE_EV_SENT] = NEVER(CLOSED),
        [IWC_CLOSE_EV_FIN] = NEVER(CLOSED),
        [IWC_CLOSE_EV_PEER_TERM] = NEVER(CLOSED),
        [IWC_CLOSE_EV_LOST] = GO(CLOSED),
        [IWC_CLOSE_EV_EXPIRED] = GO(CLOSED),
    },
};
/* clang-format on */

struct iwc_close_step iwc_close_step(enum iwc_close_state s, enum iwc_close_event e)
{
    return steps[s][e];
}

const char *iwc_close_state_name(enum iwc_close_state s)
{
    static const char *const names[] = {
#define X(name) #name,
        IWC_CLOSE_STATES(X)
#undef X
    };
    return names[s];
}

const char *iwc_close_event_name(enum iwc_close_event e)
{
    static const char *const names[] = {
#define X(name) #name,
        IWC_CLOSE_EVENTS(X)
#undef X
    };
    return names[e];
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Each threshold of pacing, from both sides, with a clock that the test sets. */
#include "qp/pacing.h"

#include "vectors.h"

#define NOW ((uint64_t)5000000000)

/** A program that polls has posted a little, and nobody waits. */
static const struct iw_pace_facts quiet_post = {
    .polled = true,
    .unsent = IW_PACE_WR_WEIGHT,
    .quantum = IW_PACE_QUANTUM_MIN,
};

/** A one-way stream, of which there is something to cork. */
static const struct iw_pace_facts stream = {
    .polled = true,
    .quantum = IW_PACE_QUANTUM_MAX,
    .quiet = IW_PACE_STREAM_MIN,
    .posted = 16,
    .uncut = 16,
    .corked_since = NOW,
};

/** The facts @p f, but for one of them. */
#define WITH(f, field, value)                                                                      \
    ({                                                                                             \
        struct iw_pace_facts changed = (f);                                                        \
        changed.field = (value);                                                                   \
        changed;                                                                                   \
    })

static void what_is_posted(void **state)
{
    const struct {
        const char *name;
        struct iw_pace_facts f;
        enum iw_pace what;
    } rows[] = {
        {"little, and polled", quiet_post, IW_PACE_DEFER},
        {"nobody polls", WITH(quiet_post, polled, 0), IW_PACE_SEND},
        {"the peer was heard: somebody may wait", WITH(quiet_post, heard, 1), IW_PACE_SEND},
        {"a poll found nothing", WITH(quiet_post, passed, 1), IW_PACE_SEND},
        {"in a stream, too", WITH(WITH(quiet_post, passed, 1), quiet, IW_PACE_STREAM_MIN),
         IW_PACE_SEND},
        {"one that is acknowledged waits for that",
         WITH(WITH(WITH(quiet_post, passed, 1), quiet, IW_PACE_STREAM_MIN), acked, 1),
         IW_PACE_DEFER},
        {"with one byte less it is none",
         WITH(WITH(WITH(quiet_post, passed, 1), quiet, IW_PACE_STREAM_MIN - 1), acked, 1),
         IW_PACE_SEND},
        {"and ends when the peer is heard",
         WITH(WITH(WITH(quiet_post, heard, 1), quiet, IW_PACE_STREAM_MIN), acked, 1), IW_PACE_SEND},
        {"messages come one by one", WITH(quiet_post, single, 1), IW_PACE_SEND},
        {"also in an acknowledged stream",
         WITH(WITH(WITH(WITH(quiet_post, passed, 1), quiet, IW_PACE_STREAM_MIN), acked, 1), single,
              1),
         IW_PACE_SEND},
        {"one byte less than a quantum", WITH(quiet_post, unsent, IW_PACE_QUANTUM_MIN - 1),
         IW_PACE_DEFER},
        {"a piece, where to send is cheap and an acknowledgement comes",
         WITH(WITH(WITH(quiet_post, unsent, IW_PACE_PIECE), cheap, 1), acked, 1), IW_PACE_SEND},
        {"less than that",
         WITH(WITH(WITH(quiet_post, unsent, IW_PACE_PIECE - 1), cheap, 1), acked, 1),
         IW_PACE_DEFER},
        {"none comes", WITH(WITH(quiet_post, unsent, IW_PACE_PIECE), cheap, 1), IW_PACE_DEFER},
        {"to send is dear", WITH(WITH(quiet_post, unsent, IW_PACE_PIECE), acked, 1), IW_PACE_DEFER},
        {"a quantum", WITH(quiet_post, unsent, IW_PACE_QUANTUM_MIN), IW_PACE_SEND},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (iw_pace_post(&rows[i].f) != rows[i].what)
            fail_msg("%s", rows[i].name);
}

static void what_is_deferred(void **state)
{
    const struct {
        const char *name;
        struct iw_pace_facts f;
        uint64_t later; /* ns after NOW */
        struct iw_paced p;
    } rows[] = {
        {"a stream", stream, 0, {IW_PACE_CORK, true, false}},
        {"at the time limit", stream, IW_PACE_CORK_NS, {IW_PACE_CORK, true, false}},
        {"behind it, with little", stream, IW_PACE_CORK_NS + 1, {IW_PACE_SEND, true, true}},
        {"behind it, not enough for a stream",
         WITH(stream, corked, IW_PACE_CORK_MIN - 1),
         IW_PACE_CORK_NS + 1,
         {IW_PACE_SEND, true, true}},
        {"behind it, enough",
         WITH(stream, corked, IW_PACE_CORK_MIN),
         IW_PACE_CORK_NS + 1,
         {IW_PACE_SEND, true, false}},
        {"corked by a thread with a later time",
         WITH(stream, corked_since, NOW + 1),
         0,
         {IW_PACE_CORK, true, false}},
        {"nothing is new", WITH(stream, uncut, 0), 0, {IW_PACE_SEND, true, false}},
        {"the last message is not corked", WITH(stream, posted, 1), 0, {IW_PACE_SEND, true, false}},
        {"two are enough", WITH(stream, posted, 2), 0, {IW_PACE_CORK, true, false}},
        {"one byte less than a stream",
         WITH(stream, quiet, IW_PACE_STREAM_MIN - 1),
         0,
         {IW_PACE_SEND, false, false}},
        {"the peer was heard", WITH(stream, heard, 1), 0, {IW_PACE_SEND, false, false}},
        {"nobody polls", WITH(stream, polled, 0), 0, {IW_PACE_SEND, false, false}},
        {"something else goes first", WITH(stream, busy, 1), 0, {IW_PACE_SEND, false, false}},
        {"other QPs have their turn, too",
         WITH(stream, quantum, IW_PACE_QUANTUM_MIN),
         0,
         {IW_PACE_SEND, false, false}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct iw_paced p = iw_pace_pass(&rows[i].f, NOW + rows[i].later);
        if (p.what != rows[i].p.what || p.stream != rows[i].p.stream || p.ends != rows[i].p.ends)
            fail_msg("%s", rows[i].name);
    }
}

/** Whatever the facts are: what is not polled for is sent, and only a stream is corked. */
static void all_yes_and_no(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 256; bits++) {
        struct iw_pace_facts f = stream;
        f.polled = bits & 1;
        f.heard = bits & 2;
        f.passed = bits & 4;
        f.busy = bits & 8;
        f.quiet = bits & 16 ? IW_PACE_STREAM_MIN : 0;
        f.quantum = bits & 32 ? IW_PACE_QUANTUM_MAX : IW_PACE_QUANTUM_MIN;
        f.posted = f.uncut = bits & 64 ? 2 : 1;
        f.single = bits & 128;
        struct iw_paced p = iw_pace_pass(&f, NOW);
        bool corks = (bits & (1 | 2 | 8 | 16 | 32 | 64)) == (1 | 16 | 32 | 64);
        assert_int_equal(p.what, corks ? IW_PACE_CORK : IW_PACE_SEND);
        assert_false(p.ends);
        assert_int_equal(iw_pace_post(&f) == IW_PACE_DEFER, (bits & (7 | 128)) == 1);
    }
}

static void a_quantum(void **state)
{
    (void)state;
    assert_int_equal(iw_pace_quantum(0), IW_PACE_QUANTUM_MIN);
    assert_int_equal(iw_pace_quantum(IW_PACE_QUANTUM_MAX - 1), IW_PACE_QUANTUM_MIN);
    assert_int_equal(iw_pace_quantum(IW_PACE_QUANTUM_MAX), IW_PACE_QUANTUM_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_posted),
        cmocka_unit_test(what_is_deferred),
        cmocka_unit_test(all_yes_and_no),
        cmocka_unit_test(a_quantum),
    };
    return cmocka_run_group_tests_name("pacing", tests, NULL, NULL);
}

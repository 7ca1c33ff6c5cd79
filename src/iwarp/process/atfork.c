/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/atfork.h"

#include "advice/life.h"
#include "advice/shadow.h"
#include "cm/endpoint.h"
#include "cq/cq.h"
#include "device/context.h"
#include "device/netwatch.h"
#include "engine/engine.h"
#include "engine/presence.h"
#include "engine/source.h"
#include "engine/timer.h"
#include "env/eventfd.h"
#include "env/pool.h"
#include "env/random.h"
#include "faults/chaos.h"
#include "local/meeting.h"
#include "mem/quiesce.h"
#include "mem/stag.h"
#include "observe/pcap.h"
#include "observe/record.h"
#include "observe/stats.h"
#include "qp/qp.h"
#include "qpn/dial.h"
#include "qpn/number.h"
#include "qpn/vouch.h"
#include "ud/access.h"
#include "ud/group.h"
#include "ud/ud.h"

#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* Two threads may fork at the same time. It has no rank: the program may hold locks of its own, and
 * where both libraries are one, those of librdmacm are taken behind it. */
static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;

static void nothing(enum fork_step step)
{
    (void)step;
}

static void (*_Atomic librdmacm)(enum fork_step) = nothing;

static void outer(enum fork_step step)
{
    librdmacm(step);
}

/* In the order of locks (common/lock_rank.h). */
static void (*const steps[])(enum fork_step) = {
    outer,
    iw_number_fork,
    iw_dial_fork,
    iw_cm_fork,
    iw_cm_move_fork,
    iw_sidr_fork,
    iw_pd_fork,
    iw_qp_fork,
    iw_rq_fork,
    iw_cq_fork,
    iw_ud_access_fork,
    iw_channel_fork,
    iw_netwatch_fork,
    iw_context_fork,
    iw_grants_fork,
    iw_stag_fork,
    iw_ud_fork,
    iw_ud_groups_fork,
    iw_meeting_fork,
    iw_vouch_fork,
    iw_random_fork,
    iw_pool_fork,
    iw_timer_fork,
    iw_eventfd_fork,
    iw_engine_fork,
    iw_adopted_fork,
    iw_source_fork,
    iw_stats_fork,
    iw_pcap_fork,
    iw_quiesce_fork,
    iw_chaos_fork,
    iw_shadow_fork,
    iw_life_fork,
    iw_advice_fork,
    iw_stack_fork,
    iw_record_fork,
};

static void before(void)
{
    pthread_mutex_lock(&forking);
    iw_engine_freeze();
    for (size_t i = 0; i < STEPS; i++)
        steps[i](FORK_PREPARE);
}

static void after(enum fork_step step)
{
    for (size_t i = STEPS; i-- > 0;)
        steps[i](step);
    iw_engine_thaw();
    if (step == FORK_CHILD) {
        iw_sources_inherited();
        iw_cm_disown();
        iw_ud_disown();
    }
    pthread_mutex_unlock(&forking);
}

static void in_parent(void)
{
    after(FORK_PARENT);
}

static void in_child(void)
{
    after(FORK_CHILD);
}

static void __attribute__((constructor)) watch(void)
{
    pthread_atfork(before, in_parent, in_child);
}

void iw_cm_at_fork(void (*step)(enum fork_step))
{
    librdmacm = step;
}

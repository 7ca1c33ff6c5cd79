/* SPDX-License-Identifier: BSD-2-Clause */
/* What librdmacm hears of the host's interfaces and addresses. */
#include "advice/life.h"
#include "advice/loan.h"
#include "cm/port.h"
#include "device/context.h"
#include "device/netif.h"
#include "engine/timer.h"
#include "faults/chaos.h"
#include "observe/record.h"

#define BUNCH_MS 20 /* an interface goes, and its addresses with it, in several steps */

static struct {
    struct iw_netwatch watch;
    struct iw_timer timer;
    atomic_bool due;
    void (*changed)(void);
} host;

static void look(struct iw_timer *t)
{
    (void)t;
    atomic_store(&host.due, false);
    host.changed();
}

static void on_change(struct iw_netwatch *w)
{
    (void)w;
    if (!atomic_exchange(&host.due, true))
        iw_timer_set(&host.timer, BUNCH_MS, look);
}

void iw_cm_watch_host(void (*changed)(void))
{
    host.changed = changed;
    iw_netwatch_add(&host.watch, on_change);
}

int iw_cm_locals(struct iw_cm_local **list)
{
    return iw_netif_locals(list);
}

bool iw_cm_device_present(struct ibv_context *ctx)
{
    return iw_netif_exists(iw_device(ctx->device)->interface);
}

bool iw_cm_chaos(enum iw_fault fault, const void *object)
{
    return iw_chaos(fault, object) != 0;
}

void iw_cm_advise(enum iw_finding finding, const char *object, const char *sentence)
{
    if (iw_advice_on())
        iw_advise(finding, object, iw_stack_here(), "%s", sentence);
}

struct iw_recorded iw_cm_record(const char *call, const void *object)
{
    return iw_record_on()
               ? iw_record_put(RECORD_CM_CALL, true, IW_RECORD_ARG((uintptr_t)object), call)
               : (struct iw_recorded){NULL, 0};
}

void iw_cm_record_end(struct iw_recorded r, int result)
{
    iw_record_end(r, result);
}

void iw_cm_record_raised(const char *event, const void *id, int status)
{
    if (iw_record_on())
        iw_record_put(RECORD_CM_RAISED, false, IW_RECORD_ARG((uintptr_t)id, (uint64_t)status),
                      event);
}

void iw_cm_record_got(const char *event, const void *id, int status)
{
    if (iw_record_on())
        iw_record_put(RECORD_CM_GOT, false, IW_RECORD_ARG((uintptr_t)id, (uint64_t)status), event);
}

void iw_cm_life_begin(const void *object, const char *kind)
{
    iw_life_begin(object, kind);
}

void iw_cm_life_end(void *object)
{
    iw_life_end(object);
}

void *iw_cm_lend(const void *data, size_t len)
{
    return iw_loan(data, len);
}

void iw_cm_lend_over(void *lent)
{
    iw_loan_over(lent);
}

bool iw_cm_life_over(const void *object, const char *call)
{
    return iw_life_over(object, call) != 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects whose asynchronous events were read wait for the acknowledgements before they go. */
#include "advice/advice.h"
#include "device/async.h"
#include "env/unmet.h"
#include "verbs/ops.h"

void settle_async_events(struct ibv_context *context, const void *element,
                         const struct async_acks *acks)
{
    struct iw_context *ctx = iw_context(context);
    int state;
    iw_async_drop(ctx, element);
    lock_get(&ctx->lock);
    unsigned read = *acks->read;
    lock_put(&ctx->lock);

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(acks->mutex);
    struct iw_unmet unmet = {0};
    while ((int)(*acks->completed - read) < 0)
        if (iw_unmet_wait(&unmet, acks->cond, acks->mutex)) {
            iw_advise(IW_FINDING_UNACKED_EVENT, acks->call, iw_stack_here(),
                      "%s() waits for acknowledgements of %u asynchronous events", acks->call,
                      read - *acks->completed);
            iw_cm_unmet("%s: waits for acknowledgements of %u asynchronous events "
                        "(ibv_ack_async_event)",
                        acks->call, read - *acks->completed);
        }
    pthread_mutex_unlock(acks->mutex);
    pthread_setcancelstate(state, &state);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* librspreload.so: threads that are cancelled, also by PTHREAD_CANCEL_ASYNCHRONOUS. */
#include "common/interrupt.h"
#include "preload/next.h"
#include "preload/rs_numbers.h"

#include <errno.h>
#include <pthread.h>

static __thread unsigned depth;
static __thread bool known;      /* to rs_interrupt() */
static __thread int state, type; /* of cancellation, of the program */

/** Whoever cancels this thread behind that is heard, and who did before ends it here. */
static void introduce(void)
{
    int saved;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved);
    rs_set_interruptible(false);
    known = true;
    pthread_setcancelstate(saved, NULL);
    pthread_testcancel();
}

void pre_shield(void)
{
    int saved = errno;
    if (depth++)
        return;
    if (!known)
        introduce();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    rs_set_interruptible(state == PTHREAD_CANCEL_ENABLE);
    errno = saved;
}

void pre_unshield(void)
{
    int saved = errno;
    if (--depth)
        return;
    rs_set_interruptible(false);
    pthread_setcancelstate(state, NULL);
    if (state == PTHREAD_CANCEL_ENABLE)
        pthread_testcancel(); /* some glibc forget PTHREAD_CANCELED in the other two */
    pthread_setcanceltype(type, NULL);
    errno = saved;
}

EXPORT int pthread_cancel(pthread_t thread)
{
    int saved, r = NEXT(int (*)(pthread_t), "pthread_cancel")(thread);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved); /* it may be asynchronous here, too */
    if (!r)
        rs_interrupt(thread);
    pthread_setcancelstate(saved, NULL);
    return r;
}

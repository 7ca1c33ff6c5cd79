/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/unmet.h"

#include "env/conf.h"

#include <errno.h>
#include <time.h>

int iw_cm_unmet_ms(const struct iw_unmet *u)
{
    bool heard = iw_log_on(IW_LOG_WARN) || iw_conf()->check[0]; /* of what is told */
    return u->waited || !heard ? -1 : IW_UNMET_MS;
}

bool iw_unmet_wait(struct iw_unmet *u, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    struct timespec until;
    if (iw_cm_unmet_ms(u) < 0) {
        pthread_cond_wait(cond, mutex);
        return false;
    }
    clock_gettime(CLOCK_REALTIME, &until); /* the clock of conditions that others made, too */
    until.tv_sec += IW_UNMET_MS / 1000;
    u->waited = pthread_cond_timedwait(cond, mutex, &until) == ETIMEDOUT;
    return u->waited;
}

void iw_cm_unmet(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    iw_vlog(IW_LOG_WARN, fmt, ap);
    va_end(ap);
}

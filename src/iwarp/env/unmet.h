/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Silent waits: where a program waits for something that only it, or its peer, can do, and that
 * nobody does, the log says after a second, at level 2, what that is.
 */
#ifndef ANYWARP_ENV_UNMET_H
#define ANYWARP_ENV_UNMET_H

#include "env/export.h"
#include "env/log.h"

#include <pthread.h>
#include <stdbool.h>

#define IW_UNMET_MS 1000

/** A wait that may be told of; zero when it begins. */
struct iw_unmet {
    bool waited; /* for the second */
};

/** How long the next wait may take until it is told of, in ms; < 0: that is not to be. */
IW_CM_EXPORT int iw_cm_unmet_ms(const struct iw_unmet *u);

/**
 * As pthread_cond_wait(), but ends after a second the first time.
 * @return true if it did: the caller tells what it waits for, if it still does
 */
bool iw_unmet_wait(struct iw_unmet *u, pthread_cond_t *cond, pthread_mutex_t *mutex);

/** Says what is waited for: a line of the log at level 2. */
IW_CM_EXPORT void iw_cm_unmet(const char *fmt, ...) __attribute__((cold, format(printf, 1, 2)));

#endif

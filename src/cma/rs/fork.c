/* SPDX-License-Identifier: BSD-2-Clause */
/* fork(): a child has none of its parent's streams, and may make its own. */
#include "cma/rs/rs.h"

static void in_child(void)
{
    rs_forget_all();
    rs_repoll_forked();
    rs_service_forked();
    rs_wake_forked();
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

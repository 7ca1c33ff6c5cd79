/* SPDX-License-Identifier: BSD-2-Clause */
/* What there is still some of at exit(), for the log of faults, if that wants it. */
#include "process/left.h"

#include "common/sys.h"
#include "faults/chaos.h"
#include "observe/stats.h"

#include <inttypes.h>
#include <stdio.h>

#define FD_MAX 1024 /* our own stand above; see env/fd.h */

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < FD_MAX; fd++)
        n += sys_fcntl(fd, F_GETFD, 0) >= 0;
    return n;
}

void iw_tell_left(void)
{
    static const struct {
        const char *name;
        enum stats_gauge gauge;
    } kinds[] = {
        {"pd", STATS_pd}, {"mr", STATS_mr},   {"mw", STATS_mw},
        {"cq", STATS_cq}, {"srq", STATS_srq}, {"qp", STATS_qp},
    };
    char text[256];
    int n = 0;
    if (!iw_chaos_wants_left())
        return;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " %s %" PRId64, kinds[i].name,
                      iw_stats_gauge_of(kinds[i].gauge));
    snprintf(text + n, sizeof(text) - (size_t)n, " fd %u", descriptors());
    iw_chaos_left(text);
}

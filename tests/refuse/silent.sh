#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# No public call is refused in silence: in the rooms of both ABIs these errors come from IW_REFUSALS.
# usage: silent.sh [FOLDER], the sources

set -u
cd "${1:-$SRCDIR/src}" || exit 99

# What needs no sentence: it was told where it happened, an event tells, or programs do not call it.
told=(
    'cma/cma.h:'
    'cma/event.c:.*told as a finding'
    'cma/ep.c:.*event->status'
    'cma/route.c:.*cma_addr_lacks_scope'
    'cma/state.c:.* no = -EINVAL'
    'iwarp/verbs/ah.c:.*r == EINVAL'     # asks, and tells in the next line
    'iwarp/verbs/chaos.c:'
    'iwarp/verbs/context.c:.*EOPNOTSUPP' # slots that only programs of before 2012 call
    'iwarp/verbs/post.c:.*return EINVAL' # of "run --like"
    'iwarp/verbs/private.c:'             # for the libraries of providers
)
silent=$(grep -nE '\b(EINVAL|EOPNOTSUPP|ENOTSUP|ENOSYS|EPERM|EBUSY)\b' iwarp/verbs/*.c cma/*.[ch] |
    grep -vE 'iw_refuse|^[^:]*:[0-9]*: *(/\*| \*)' |
    grep -vE "$(printf '^%s|' "${told[@]//:/:[0-9]*:}" | sed 's/|$//')")
[ -z "$silent" ] || {
    printf 'refused without a sentence:\n%s\n' "$silent"
    exit 1
}

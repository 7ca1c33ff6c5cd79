#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# System calls that a filter refuses, as in some containers: one line of the log names the reason.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
no_test_variables
refused=$BUILDDIR/tests/apps/refused
"$refused" socket=0 true || skip "no filter of system calls"

# tells CALL PATTERN: of a program with two queue pairs
tells()
{
    VERBS_LOG_LEVEL=2 timeout -k 5 20 "$refused" "$1" "$BUILDDIR/tests/check/right" \
        >"$dir/out" 2>"$dir/out.err"
    [ "$(grep -cE "^anywarp: no .*$2.*: Operation not permitted$" "$dir/out.err")" = 1 ] ||
        failed "$1: no line, or several, of /$2/" out
    ! grep -q 'has closed' "$dir/out.err" || failed "$1: the program is blamed" out
}

tells epoll_create1 'connection is run, as an epoll set, .* is refused'
tells epoll_ctl 'connection is run, as an epoll set, .* is refused'
tells timerfd_create 'connection is run, as .* a timerfd .* is refused'
tells epoll_pwait 'connection goes on, as the kernel refuses to wait for sockets, epoll_pwait'
tells getrandom 'random numbers'

finish

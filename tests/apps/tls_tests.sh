#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests of the public API once more, with all connections in TLS: fork, exit, half of a close,
# Terminate, receives that come late, everything at random.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
umask 077
need_tls
export ANYWARP_TLS=require ANYWARP_TLS_PSK=$dir/psk

for test in rc fork exit cm_connect cm_sync error explain number stream srq walk answer closed itself; do
    [ -x "$BUILDDIR/tests/api/${test}_test" ] || { failed "$test: not built" && continue; }
    timeout 120 "$BUILDDIR/tests/api/${test}_test" >"$dir/$test" 2>"$dir/$test.err" ||
        failed "$test: exit status $?" "$test"
done

finish

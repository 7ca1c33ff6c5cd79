#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The static probes are in the library, with as many arguments as src/common/usdt.h promises; where
# bpftrace can be run, the example script sees a session.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need readelf
grep -q '^USDT_CPPFLAGS = .*ANYWARP_USDT' "$BUILDDIR/Makefile" ||
    skip "built without probes: install systemtap-sdt-dev and configure again"

library=$BUILDDIR/.libs/libibverbs.so.1
readelf -n "$library" 2>/dev/null |
    awk '$1 == "Provider:" { provider = $2 }
         $1 == "Name:" { name = $2 }
         $1 == "Arguments:" && provider == "anywarp" { print name, NF - 1 }' | sort -u >"$dir/probes"
cat >"$dir/wanted" <<'END'
completion 5
connection 5
error 3
post 4
state 3
END
cmp -s "$dir/wanted" "$dir/probes" || failed "probes of $library" probes

# What the example uses is there.
script=$SRCDIR/examples/anywarp.bt
used=$(grep -oE '^usdt:[^ ]*:anywarp:[a-z]+' "$script" | sed 's/.*://' | sort -u)
[ -n "$used" ] || failed "no probes in $script"
for name in $used; do
    grep -q "^$name " "$dir/probes" || failed "$script: no probe $name"
done

if [ "$(id -u)" != 0 ] || ! command -v bpftrace >/dev/null || [ ! -d /sys/kernel/tracing/events ]; then
    echo "bpftrace cannot be run here: its script is not tried"
    finish
fi
need rping
sed "s|LIBRARY|$library|" "$script" >"$dir/trace.bt"
bpftrace "$dir/trace.bt" >"$dir/trace" 2>"$dir/trace.err" &
pids[trace]=$!
within 20 grep -qs '^Attaching' "$dir/trace" || skip "bpftrace: $(tail -n 1 "$dir/trace.err")"
port=$(free_port)
start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -C 5
start client rping -c -a 127.0.0.1 -p "$port" -C 5
expect_status "traced rping" client 30 0 server
expect_status "traced rping" server 30 0 client
kill -INT "${pids[trace]}"
ended trace 20
grep -q 'connected' "$dir/trace" || failed "the script saw no connection" trace

finish

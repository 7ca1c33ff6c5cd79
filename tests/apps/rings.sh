#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Where a process shares as much memory as it may, further connections stay on TCP, and stat says why.
# Messages of many rings wait for room again and again, and go on.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ib_send_bw

export ANYWARP_SHM=16777216 # eight such pairs are 256 MB
export ANYWARP_STATS=$dir/stats

port=$(free_port)
start_server server "$port" ib_send_bw -R -q 9 -s 65536 -D 1 --run_infinitely -p "$port"
start client ib_send_bw -R -q 9 -s 65536 -D 1 --run_infinitely -p "$port" 127.0.0.1

# counted WORDS: of how many QPs of the client stat says so.
counted()
{
    "$ANYWARP" stat "${pids[client]}" 2>/dev/null | grep -cE "^  qp .* rings $1 "
}

# The machine and its control groups may leave less than eight.
settled()
{
    in_rings=$(counted '(both|in|out)')
    [ "$in_rings" -le 8 ] && [ $((in_rings + $(counted 'none \(limit\)'))) = 9 ]
}
within 20 settled || {
    failed "stat does not show eight connections in rings at most, and the others on TCP" client server
    "$ANYWARP" stat "${pids[client]}"
}
lines=$(wc -l <"$dir/client")
within 10 lines_at_least client $((lines + 2)) || failed "they do not go on" client server
stop client
within 10 gone server || failed "the server hangs" server
wait "${pids[server]}" 2>/dev/null # it ends with the connections, and frees what its other thread is at
unset 'pids[server]'

export ANYWARP_SHM=on
# Who only writes hears nothing but acknowledgements.
port=$(free_port)
start_server server "$port" ib_write_bw -s 64 -D 1 --run_infinitely -p "$port"
start client ib_write_bw -s 64 -D 1 --run_infinitely -p "$port" 127.0.0.1
both()
{
    [ "$(counted both)" = 1 ]
}
within 20 both || failed "acknowledgements do not come through the ring" client server
stop client
within 10 gone server || stop server
wait "${pids[server]}" 2>/dev/null
unset 'pids[server]'

port=$(free_port)
start_server server "$port" ib_send_lat -s 4194304 -n 30 -p "$port"
start client ib_send_lat -s 4194304 -n 30 -p "$port" 127.0.0.1
expect_status "large messages" client 60 0 server
expect_status "large messages" server 20 0 client

finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One qperf server serves test after test, on a machine that has other things to do. It takes the
# next client when it has heard that the last one has gone, which leaves with its data on their way.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need qperf

tests=(rc_bi_bw rc_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat
    rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add)
floods=(rc_bi_bw rc_bw rc_lat)

while [ $SECONDS -lt 200 ]; do :; done &
pids[load]=$!
port=$(free_port)
start_server server "$port" qperf -lp "$port"
for test in "${tests[@]}" "${floods[@]}" "${floods[@]}"; do
    start client qperf -lp "$port" -cm1 -t 1 127.0.0.1 "$test"
    expect_status "$test" client 30 0 server
    grep -q '=' "$dir/client" || failed "$test: no result" client server
    [ $failures = 0 ] || break
done
stop server

finish

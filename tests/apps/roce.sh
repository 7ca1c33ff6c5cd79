#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs of rdma_cm on a RoCE device, and with ends of the other kind.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping ucmatose rdma_server ib_send_bw ib_write_lat

roce=anyroce0=roce:
iwarp=anywarp0=iwarp:

# both DEVICES SERVER... -- CLIENT...: both end well, and the client's output is left.
both()
{
    export ANYWARP_DEVICES=$1
    local what=$2 server=()
    shift
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    start_server server "$port" "${server[@]}"
    start client "$@"
    expect_status "$what, $ANYWARP_DEVICES" client 60 0 server
    expect_status "$what, server" server 60 0 client
}

for devices in "$roce" "$iwarp $roce"; do
    port=$(free_port)
    both "$devices" rping -s -p "$port" -V -C 10 -- rping -c -a 127.0.0.1 -p "$port" -V -v -C 10
    grep -q rdma-ping-9 "$dir/client" || failed 'rping: too few pings' client
    port=$(free_port)
    both "$devices" ucmatose -p "$port" -c 20 -C 50 -- ucmatose -p "$port" -s 127.0.0.1 -c 20 -C 50
    port=$(free_port)
    both "$devices" rdma_server -p "$port" -- rdma_client -s 127.0.0.1 -p "$port"
    port=$(free_port)
    both "$devices" ib_send_bw -F -R -n 1000 -p "$port" -- ib_send_bw -F -R -n 1000 -p "$port" 127.0.0.1
    port=$(free_port)
    both "$devices" ib_write_lat -F -R -n 100 -p "$port" -- ib_write_lat -F -R -n 100 -p "$port" 127.0.0.1
done

# meets SERVER-DEVICES CLIENT-DEVICES: both end well.
meets()
{
    port=$(free_port)
    ANYWARP_DEVICES=$1 start_server server "$port" rping -s -p "$port" -C 3
    ANYWARP_DEVICES=$2 start client rping -c -a 127.0.0.1 -p "$port" -C 3
    expect_status "$1 for $2" client 60 0 server
    expect_status "$1 for $2, server" server 60 0 client
}
meets "$iwarp $roce" "$roce"
meets "$roce $iwarp" "$iwarp"

# misses SERVER-DEVICES CLIENT-DEVICES WHOSE: the server tells whose request it is.
misses()
{
    export VERBS_LOG_LEVEL=2
    port=$(free_port)
    ANYWARP_DEVICES=$1 start_server server "$port" rping -s -p "$port" -C 3
    ANYWARP_DEVICES=$2 start client rping -c -a 127.0.0.1 -p "$port" -C 3
    ended client 60
    [ "$status" != 0 ] || failed "$1 for $2: it connects" client
    grep -q RDMA_CM_EVENT_REJECTED "$dir/client" "$dir/client.err" || failed "$1 for $2" client
    stop server
    grep -q "rdma_listen: a connection request of $3 device" "$dir/server.err" ||
        failed "$1 for $2: it does not say why" server
    unset VERBS_LOG_LEVEL
}
misses "$roce" "$iwarp" 'an iWARP'
misses "$iwarp" "$roce" 'a RoCE'

# A server that is killed is an event; work that is posted then fails when the retries are over.
port=$(free_port)
export ANYWARP_DEVICES=$roce
start_server server "$port" rping -s -p "$port"
start client rping -c -a 127.0.0.1 -p "$port" -C 1000000
sleep 0.5
kill -KILL "${pids[server]}"
ended client 60
[[ $status != none ]] || failed 'killed: the client stays' client

finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs between two hosts with ANYWARP_TLS=require: all of them run, Wireshark sees TLS and
# nothing else, and without the key none comes in.

# The clients' host is a namespace of its own as well.
if [ "${1-}" != inside ]; then
    unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here" && exit 77; }
    exec unshare -n bash "$0" inside
fi

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/interop/capture.sh
. "$SRCDIR/tests/interop/capture.sh"
# shellcheck source=tests/apps/hosts.sh
. "$SRCDIR/tests/apps/hosts.sh"
need ip nsenter rping ucmatose ib_send_bw fio tshark ibv_rc_pingpong
[ "$(id -u)" = 0 ] || skip "capturing needs root"
two_hosts

export VERBS_LOG_LEVEL=2
preload=$dir/preload.so
${CC:-cc} -shared -fPIC -D_GNU_SOURCE -o "$preload" "$SRCDIR/tests/apps/perftest_preload.c" -ldl ||
    skip "perftest_preload.c does not build"
need_tls
key=(ANYWARP_TLS=require "ANYWARP_TLS_PSK=$dir/psk")

start_capture "$dir/capture.pcapng" near tcp || skip "tshark cannot capture here"

# stop_capture: on a busy machine it may have holes.
stop_capture()
{
    kill -INT "${pids[tshark]}"
    ended tshark 10
}

run_options=() # of "anywarp run", for both programs

# serve PROGRAM OPTION...: on the other host, with the key.
serve()
{
    start_server server "$port" "${run_options[@]}" nsenter -t "$host" -n env "${key[@]}" "$@"
}

# ends WHAT: both programs, and well.
ends()
{
    expect_status "$1" client 60 0 server
    expect_status "$1" server 20 0 client
}

# pair SERVER -- CLIENT: both programs with the key, or, if $keyless, the client without.
keyless=
pair()
{
    local server=()
    port=$(free_port)
    while [ "$1" != -- ]; do
        server+=("${1//PORT/$port}")
        shift
    done
    shift
    serve "${server[@]}"
    if [ ! "$keyless" ]; then
        start client "${run_options[@]}" env "${key[@]}" "${@//PORT/$port}"
        ends "$*"
        return
    fi
    start client "${run_options[@]}" env "${@//PORT/$port}"
    within 30 grep -q 'the peer spoke plain MPA' "$dir/server.err" ||
        failed "$*: the server does not tell of a client without TLS" server
    within 30 grep -q 'it wants TLS (ANYWARP_TLS=require)' "$dir/client.err" "$dir/client" ||
        failed "$*: a client without TLS is not told so" client
    within 5 gone client
    # fio itself ends with 0.
    if [ "$1" != fio ] && gone client && wait "${pids[client]}"; then
        failed "$*: without the key the client ends well" client
    fi
    kill -KILL "${pids[client]}" "${pids[server]}" 2>/dev/null
    wait "${pids[client]}" "${pids[server]}" 2>/dev/null
    unset "pids[client]" "pids[server]"
}

far=10.77.0.2
fio=(fio --ioengine=rdma --port=PORT --bs=64k --size=8m)
pairs()
{
    local test verb
    pair rping -s -a $far -p PORT -C 20 -V -S 65535 -- rping -c -a $far -p PORT -C 20 -V -S 65535
    pair ucmatose -p PORT -c 10 -C 20 -- ucmatose -s $far -p PORT -c 10 -C 20
    run_options=(-e "LD_PRELOAD=$preload")
    for test in ib_send_bw ib_write_bw ib_read_bw ib_send_lat ib_write_lat ib_read_lat; do
        pair $test -R -F -p PORT -n 200 -- $test -R -F -p PORT -n 200 $far
    done
    run_options=()
    for verb in write read send; do
        pair "${fio[@]}" --name=server --rw=read -- "${fio[@]}" --name=client --rw=write \
            --hostname=$far --verb=$verb --iodepth=16
    done
}

pairs
stop_capture
expect_none 'iwarp_mpa || iwarp_ddp_rdmap'
! grep -aqE 'MPA ID|rdma-ping' "$capture" || failed "there is something in the clear"
[ "$(decode -Y 'tls.record.opaque_type == 23' | wc -l)" -gt 1000 ] || failed "too little TLS was seen"

keyless=yes
pairs

# By number: the programs tell each other their numbers in the clear, what follows is TLS.
start_capture "$dir/number.pcapng" near tcp
port=$(free_port)
serve ibv_rc_pingpong -g 1 -p "$port" -n 500 -c
start client env "${key[@]}" ibv_rc_pingpong -g 1 -p "$port" -n 500 -c $far
ends "ibv_rc_pingpong by number"
stop_capture
expect_none 'iwarp_mpa || iwarp_ddp_rdmap'
[ "$(decode -Y 'tls.record.opaque_type == 23' | wc -l)" -gt 500 ] || failed "by number: no TLS"
serve ibv_rc_pingpong -g 1 -p "$port" -n 500
start client ibv_rc_pingpong -g 1 -p "$port" -n 500 $far
within 60 gone client || failed "by number without the key: the client goes on" client server
grep -q 'wants TLS\|plain MPA\|speaks TLS' "$dir/client.err" "$dir/server.err" ||
    failed "by number without the key: no word" client server

finish

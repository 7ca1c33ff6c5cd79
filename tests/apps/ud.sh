#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs with datagrams: on one host, between two, by IPv4 and IPv6; and who is kept out.

# The clients' host is a namespace of its own as well.
if [ "${1-}" != inside ]; then
    unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here" && exit 77; }
    exec unshare -n bash "$0" inside
fi

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/apps/hosts.sh
. "$SRCDIR/tests/apps/hosts.sh"
need ip nsenter ibv_ud_pingpong ib_send_bw ib_send_lat ibv_devinfo

two_hosts
export ANYWARP_DEVICES='anywarp0=iwarp: anyroce0=roce:near' VERBS_LOG_LEVEL=2
there=(nsenter -t "$host" -n env 'ANYWARP_DEVICES=anywarp0=iwarp: anyroce0=roce:far')

# pair PROGRAM OPTION...: from this host to the other, or with $alone on that.
alone=
pair()
{
    port=$(free_port)
    start_server server "$port" "${there[@]}" "$@" -p "$port"
    if [ $alone ]; then
        start client "${there[@]}" "$@" -p "$port" 127.0.0.1
    else
        start client "$@" -p "$port" 10.77.0.2
    fi
    expect_status "$*" client 120 0 server
    expect_status "$*" server 30 0 client
}

# gid PATTERN: the index of such a GID of anywarp0, the same on both hosts.
gid()
{
    "$ANYWARP" run ibv_devinfo -d anywarp0 -v |
        sed -n "s/.*GID\[ *\([0-9]*\)\]:[[:space:]]*$1.*/\1/p" | head -n 1
}

# Between two hosts, one at a time: what UDP loses is lost.
pair ibv_ud_pingpong -g 1 -r 10 -n 200
pair ibv_ud_pingpong -g 1 -e -r 10 -n 200
pair ibv_ud_pingpong -g "$(gid fd77:)" -r 10 -n 200
pair ibv_ud_pingpong -g "$(gid fe80:)" -r 10 -n 200
pair ibv_ud_pingpong -d anyroce0 -g 0 -r 10 -n 200
pair ib_send_lat -F -d anyroce0 -c UD -n 200
pair ib_send_lat -F -d anyroce0 -c UD -s 1024 -n 200

# On one host none is lost.
alone=yes
pair ibv_ud_pingpong -g 1
pair ibv_ud_pingpong -g 1 -e -n 200
pair ibv_ud_pingpong -d anyroce0 -g 0
pair ib_send_lat -F -d anyroce0 -c UD -n 500
pair ib_send_bw -F -d anyroce0 -c UD -a -n 1000
pair ib_send_bw -F -d anyroce0 -c UD -s 512 -e -n 1000
pair ib_send_bw -F -d anyroce0 -c UD -q 2 -n 1000
pair ib_send_bw -F -d anyroce0 -c UD -b -n 1000

# UCX, which looks at the headers and does its own repeating; by UD alone, and RC that UD sets up.
if ! sanitized && command -v ucx_perftest >/dev/null && compgen -G '/usr/lib/*/ucx/libuct_ib.so*' >/dev/null; then
    for tls in ud_verbs,self rc_v,ud_v,self; do
        for test in tag_lat tag_bw ucp_put_lat ucp_get ucp_fadd ucp_am_lat; do
            port=$(free_port)
            start_server server "$port" "${there[@]}" "UCX_TLS=$tls" "${ucx_perftest[@]}" -p "$port"
            start client "${there[@]}" "UCX_TLS=$tls" "${ucx_perftest[@]}" -t $test -n 200 -p "$port" 127.0.0.1
            expect_status "UCX $tls $test" client 120 0 server
            expect_status "UCX $tls $test" server 30 0 client
        done
    done
fi
if command -v fi_pingpong >/dev/null; then
    port=$(free_port)
    start_server server "$port" "${there[@]}" fi_pingpong -p verbs -e dgram -I 50 -B "$port"
    start client "${there[@]}" fi_pingpong -p verbs -e dgram -I 50 -P "$port" 127.0.0.1
    expect_status 'fi_pingpong -e dgram' client 120 0 server
    expect_status 'fi_pingpong -e dgram' server 30 0 client
fi

# refused PATTERN COMMAND...: no address handle to the other host can be had.
refused()
{
    local pattern=$1
    shift
    port=$(free_port)
    start_server server "$port" "${there[@]}" ibv_ud_pingpong -g 1 -p "$port"
    start client env "$@" ibv_ud_pingpong -g 1 -p "$port" 10.77.0.2
    expect_status "$*" client 60 1
    grep -q "$pattern" "$dir/client.err" || failed "$*: not /$pattern/" client
    stop server
}
refused 'ibv_create_ah: ANYWARP_TLS=require: datagrams to 10.77.0.2' ANYWARP_TLS=require
printf '%s\n' 'deny to 10.77.0.2' 'allow to any' >"$dir/rules"
refused 'ibv_create_ah: ANYWARP_ACCESS: .*10.77.0.2' "ANYWARP_ACCESS=$dir/rules"

# With these the two of one host may.
export ANYWARP_TLS=require
pair ibv_ud_pingpong -g 1 -n 100
unset ANYWARP_TLS

# What the receiver's rules refuse is dropped there.
printf '%s\n' 'deny from 10.77.0.1' 'allow to any' >"$dir/rules"
port=$(free_port)
start_server server "$port" "${there[@]}" "ANYWARP_ACCESS=$dir/rules" \
    ibv_ud_pingpong -g 1 -p "$port"
start client ibv_ud_pingpong -g 1 -p "$port" 10.77.0.2
within 20 grep -q 'datagrams dropped: ANYWARP_ACCESS' "$dir/server.err" ||
    failed "nothing is said of datagrams that are dropped" server client
stop server client

finish

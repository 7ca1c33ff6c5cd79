#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The examples of rdma-core: what fits an iWARP adapter works, the rest says why not and ends.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ucmatose rdma_client rdma_xclient udaddy mckey cmtime ibv_rc_pingpong

# serve PROGRAM OPTION...: a server on $port, a new one.
serve()
{
    port=$(free_port)
    start_server server "$port" "$@" -p "$port"
}

# client PROGRAM OPTION...
client()
{
    start client "$@" -p "$port"
    expect_status "$*" client 30 0 server
}

# works SERVER CLIENT OPTION...: the options are for both.
works()
{
    local server=$1 client=$2
    shift 2
    serve "$server" "$@"
    client "$client" "$@" -s "$host"
    expect_status "$server${*:+ $*}" server 10 0 client
}

host=127.0.0.1
works ucmatose ucmatose
works ucmatose ucmatose -c 20 -C 50
works rdma_server rdma_client
works rdma_xserver rdma_xclient
# The client takes the first of the addresses; the server is for IPv4.
host=localhost
[[ "$(getent ahosts $host)" = 127.* ]] || { echo "$host is not IPv4 first" && host=127.0.0.1; }
works ucmatose ucmatose -f name -t 8 -C 5 -S 65536 -m
if grep -qs '^0*1 ' /proc/net/if_inet6; then
    serve ucmatose -b ::1
    client ucmatose -s ::1
    expect_status "ucmatose to ::1" server 10 0 client
fi

# The server of cmtime stays, but gives the CQs of its first client to the second one's QPs as well.
for count in 1 20; do
    cmtime_fits || break
    serve cmtime
    client cmtime -s 127.0.0.1 -c $count
    stop server
done

# hear OPTION...: three receivers of a multicast group get what a fourth sends.
hear()
{
    local i
    for i in 1 2 3; do
        start receiver$i stdbuf -oL mckey "$@" # else it says nothing before its end
    done
    for i in 1 2 3; do
        within 20 grep -q joined "$dir/receiver$i" || failed "mckey $*: has not joined" receiver$i
    done
    start sender mckey -s "$@"
    expect_status "mckey -s $*" sender 30 0
    for i in 1 2 3; do
        expect_status "mckey $*" receiver$i 30 0 sender
    done
}

# udaddy_pair ADDRESS OPTION...: its port is always the same.
udaddy_pair()
{
    local address=$1
    shift
    start_server server 7174 udaddy "$@"
    start client udaddy -s "$address" "$@"
    expect_status "udaddy to $address${*:+ $*}" client 30 0 server
    expect_status "udaddy${*:+ $*}" server 10 0 client
}

for devices in anywarp0=iwarp: anyroce0=roce:; do
    export ANYWARP_DEVICES=$devices
    udaddy_pair 127.0.0.1
    udaddy_pair 127.0.0.1 -c 10 -C 50 -S 1000 -t 8
    udaddy_pair 127.0.0.1 -p 0x2
    hear -m 239.1.1.1 -b 127.0.0.1
    hear -m 239.1.1.2 -b 127.0.0.1 -p 0x2 -c 2 -C 30 -S 512
    hear -M ff0e::ffff:ef01:103 -b 127.0.0.1
done
unset ANYWARP_DEVICES
! grep -qs '^0*1 ' /proc/net/if_inet6 || udaddy_pair ::1 -b ::1

# fails PATTERN COMMAND...: soon, with an exit status of its own and that message.
fails()
{
    local pattern=$1
    shift
    start client "$@"
    ended client 10
    { [ $status != none ] && [ $status -gt 0 ] &&
        { [ $status -lt 128 ] || [ $status = 255 ]; } } || failed "$*: exit status $status" client
    grep -qE -- "$pattern" "$dir/client" "$dir/client.err" || failed "$*: not /$pattern/" client
}

# Nobody listens; no XRC.
fails 'RDMA_CM_EVENT_UNREACHABLE, error: 1' udaddy -s 127.0.0.1
fails 'rdma_create_ep: Operation not supported' rdma_xclient -c x -s 127.0.0.1
fails "Couldn't Open the XRC Domain" ibv_xsrq_pingpong

# iWARP connects with a CM only: a QP cannot be given its peer.
for program in ibv_rc_pingpong ibv_srq_pingpong; do
    serve $program
    start client $program -p "$port" 127.0.0.1
    ended server 10
    [ $status = 1 ] || failed "$program: exit status $status" server
    grep -q 'Failed to modify QP.* to RT' "$dir/server.err" || failed "$program: no message" server
    ended client 1
done

finish

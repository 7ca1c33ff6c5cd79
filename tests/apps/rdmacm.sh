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

# No UD or XRC.
fails 'return status -1' udaddy
fails 'return status [-1]' udaddy -s 127.0.0.1
fails 'return status -1' mckey -m 239.1.1.1 -b 127.0.0.1
fails 'return status -1' mckey -s -m 239.1.1.1 -b 127.0.0.1
fails 'rdma_create_ep: Operation not supported' rdma_xclient -c x -s 127.0.0.1
fails "Couldn't create QP" ibv_ud_pingpong
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

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's programs of rsockets: streams in each manner, written memory, a copied file.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rstream riostream rcopy

# both PROGRAM OPTION...
both()
{
    port=$(free_port)
    start_server server "$port" "$@" -p "$port"
    start client "$@" -p "$port" -s 127.0.0.1
    expect_status "$*" client 60 0 server
    expect_status "$*: server" server 10 0 client
}

for size in 64 4096 65536 1048576; do
    for manner in '-T b' '-T n' ''; do
        # shellcheck disable=SC2086
        both rstream $manner -T v -S $size -C 50
    done
done
both rstream -T b -T r -S 64 -C 50
both riostream -T v -S 4096 -C 50
both riostream -T b -T v -S 65536 -C 50

# bound PORT: whether a UDP socket has it.
bound()
{
    grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") " /proc/net/udp
}

# pong MANNER: the server stays. Where a datagram is lost udpong may repeat the last one for ever,
# over sockets of the kernel, too.
pong()
{
    port=$(free_port)
    start server udpong -T "$1" -S 1024 -C 100 -b 127.0.0.1 -p "$port"
    within 20 bound "$port" || failed 'udpong does not begin' server
    start client udpong -T "$1" -S 1024 -C 100 -p "$port" -s 127.0.0.1
    ended client 10
    local client_status=$status
    stop server
    [ "$client_status" = 0 ]
}

for manner in b n; do
    pong $manner || pong $manner || pong $manner || failed "udpong -T $manner" client server
done

# The server of rcopy stays.
head -c 5000001 /dev/urandom >"$dir/from"
port=$(free_port)
start_server server "$port" rcopy -p "$port"
start client rcopy "$dir/from" "127.0.0.1:$dir/to" -p "$port"
expect_status rcopy client 30 0 server
cmp "$dir/from" "$dir/to" || failed 'rcopy: the copy is another' client server
stop server

finish

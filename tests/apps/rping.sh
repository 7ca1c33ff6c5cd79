#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock rping: over every kind of address and size, and a server with many clients.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping ip

pings=100

# expect_pings WHAT NAME COUNT: every ping is printed once, in order. The exit status alone says
# little: rping ends with 0 if the other end hangs up in the middle.
expect_pings()
{
    local numbers
    numbers=$(sed -nE 's/^(server )?ping data: rdma-ping-([0-9]+).*/\2/p' "$dir/$2")
    [ "$numbers" = "$(seq 0 $(($3 - 1)))" ] || failed "$1: not all pings of $2" "$2"
}

# pair ADDRESS SIZE [SERVER-OPTION CLIENT-OPTION]
pair()
{
    local what="rping to $1 with $2 bytes, server ${3-}, client ${4-}" port
    port=$(free_port)
    local options=(-a "$1" -p "$port" -v -V -C "$pings" -S "$2")
    start_server server "$port" rping -s "${options[@]}" ${3:+"$3"}
    start client rping -c "${options[@]}" ${4:+"$4"}
    expect_status "$what" client 60 0 server
    expect_status "$what" server 30 0
    expect_pings "$what" client $pings
    expect_pings "$what" server $pings
}

addresses=(127.0.0.1)
! grep -qs '^0*1 ' /proc/net/if_inet6 || addresses+=(::1)
mapfile -t -O ${#addresses[@]} addresses < <(own_addresses)
for address in "${addresses[@]}"; do
    for size in 64 4096 65535; do
        pair "$address" $size
    done
done

# With queue pairs that rping makes and moves itself, at either end and at both.
pair 127.0.0.1 64 -q -q
pair 127.0.0.1 65535 -q ''
pair 127.0.0.1 65535 '' -q

# persistent OPTION...: one server for many clients.
persistent()
{
    port=$(free_port)
    client=(rping -c -a 127.0.0.1 -p "$port" -v -V)
    start_server persistent "$port" rping -s -P -V -a 127.0.0.1 -p "$port" "$@"
}

# one_by_one CLIENT-OPTION...: clients of the persistent server, one after another.
one_by_one()
{
    for turn in {1..20}; do
        start client "${client[@]}" -C 10 "$@"
        expect_status "client $turn of one server" client 30 0 persistent
        expect_pings "client $turn of one server" client 10
    done
}

persistent -q
one_by_one
one_by_one -q
stop persistent

# Clients one after another and four at a time.
persistent
one_by_one

# A server of rping takes one request at a time, so clients come a little apart: a later one
# connects, and goes on, while the earlier ones are connected.
for turn in {1..4}; do
    start "together$turn" "${client[@]}" -C 2000
    within 20 lines_at_least "together$turn" 20 ||
        failed "client $turn does not start" "together$turn" persistent
    kill -STOP "${pids[together$turn]}" 2>/dev/null
    sleep 0.2
done
for turn in {1..4}; do
    kill -CONT "${pids[together$turn]}" 2>/dev/null
done
for turn in {1..4}; do
    expect_status "four clients at once" "together$turn" 60 0 persistent
    expect_pings "four clients at once" "together$turn" 2000
done
stop persistent

finish

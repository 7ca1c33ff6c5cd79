#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Peers that die, are not there, talk nonsense or say nothing.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping

# killed VICTIM SURVIVOR: the survivor notices, and ends by itself.
killed()
{
    local port
    port=$(free_port)
    local options=(-a 127.0.0.1 -p "$port" -v -S 65535)
    start_server server "$port" rping -s "${options[@]}"
    start client rping -c "${options[@]}"
    within 20 lines_at_least client 20 || failed "no pings" client server
    kill -KILL "${pids[$1]}"
    ended "$1" 10
    ended "$2" 10
    { [ $status != none ] && [ $status -lt 128 ]; } ||
        failed "$1 killed: exit status of the $2: $status" "$2"
}

killed client server
killed server client

# Nobody listens.
start client rping -c -a 127.0.0.1 -p "$(free_port)" -C 1
ended client 5
case $status in
none | 0) failed "connection refused: exit status $status" client ;;
esac
grep -q 'RDMA_CM_EVENT_REJECTED' "$dir/client.err" || failed "connection refused: no message" client

# Strangers at the port of a server.
port=$(free_port)
start_server server "$port" rping -s -P -V -a 127.0.0.1 -p "$port"

# good_client WHAT: the server serves one.
good_client()
{
    start client rping -c -a 127.0.0.1 -p "$port" -v -V -C 20
    expect_status "$1" client 20 0 server
    [ "$(grep -c '^ping data' "$dir/client")" = 20 ] || failed "$1: not all pings" client server
    running server || failed "$1: the server is gone" server
}

good_client 'the first one'
descriptors=$(find /proc/"${pids[server]}"/fd | wc -l) # with what stays open from the first on

# say FORMAT: connects as $stranger and sends that.
say()
{
    exec {stranger}<>/dev/tcp/127.0.0.1/"$port" || exit 99
    # In a process of its own, which dies of SIGPIPE if the server hangs up first.
    # shellcheck disable=SC2059
    (printf "$1" >&"$stranger") 2>/dev/null
}

# hung_up SECONDS: whether the server closes on the stranger in that time.
hung_up()
{
    timeout "$1" cat <&"$stranger" >/dev/null 2>&1
    [ $? != 124 ]
}

# 16 bytes of key; flags, revision, length of private data.
mpa='MPA ID Req Frame'
nonsense=(
    "$(head -c 4096 /dev/urandom | od -An -v -to1 | tr -d '\n' | tr ' ' '\\')"
    'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
    'MPA ID Rep Frame\100\002\000\000'
    "$mpa"'\100\002\377\377'
    "$mpa"'\100\011\000\000'
)
for text in "${nonsense[@]}"; do
    say "$text"
    hung_up 5 || failed "the server listens to nonsense: ${text:0:60}" server
    exec {stranger}>&-
    good_client "after nonsense: ${text:0:60}"
done

# Half a request, then nothing or the end; a stranger that says nothing at all.
waiting=()
for text in '' "${mpa:0:8}" "$mpa"'\100\002\000\004ab'; do
    say "$text"
    exec {stranger}>&-
    good_client "after a peer that left after '$text'"
    say "$text"
    waiting+=("$stranger")
    good_client "beside a peer that waits after '$text'"
done
for stranger in "${waiting[@]}"; do
    exec {stranger}>&-
done

# Whole, and then no FPDU: an established peer that sends rubbish.
say "$mpa"'\100\001\000\000'
(head -c 65536 /dev/urandom >&"$stranger") 2>/dev/null
hung_up 5 || failed "the server goes on after broken FPDUs" server
exec {stranger}>&-
good_client 'after broken FPDUs'

# Nothing of the strangers stays behind.
no_more_descriptors()
{
    [ "$(find /proc/"${pids[server]}"/fd 2>/dev/null | wc -l)" -le "$descriptors" ]
}
within 10 no_more_descriptors || {
    failed "descriptors are left; there were $descriptors" server
    ls -l /proc/"${pids[server]}"/fd
}
stop server

finish

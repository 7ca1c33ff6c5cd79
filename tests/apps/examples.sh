#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of examples/ that are installed as programs: what they print, where, their exit
# statuses.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"

client=$BUILDDIR/examples/rdma_sum_client
server=$BUILDDIR/examples/rdma_sum_server
check=$BUILDDIR/examples/check_ofed_verbs_support

# expect_output WHAT NAME TEXT: that is all on standard output, and nothing is on standard error.
expect_output()
{
    [ "$(cat "$dir/$2")" = "$3" ] && [ ! -s "$dir/$2.err" ] || failed "$1: wanted \"$3\"" "$2"
}

# expect_error WHAT NAME PATTERN: nothing on standard output, this on standard error.
expect_error()
{
    [ ! -s "$dir/$2" ] && grep -qE -- "$3" "$dir/$2.err" || failed "$1: wanted an error like \"$3\"" "$2"
}

addresses=(127.0.0.1)
! grep -qs '^0*1 ' /proc/net/if_inet6 || addresses+=(::1)
if [ ${#addresses[@]} = 2 ]; then any=::; else any=0.0.0.0; fi

# sum ADDRESS-OF-SERVER ADDRESS-FOR-CLIENT NUMBER NUMBER RESULT
sum()
{
    local what="$3 + $4 from $2 at $1" port
    port=$(free_port)
    start_server server "$port" "$server" -a "$1" -p "$port"
    start client "$client" -p "$port" "$2" "$3" "$4"
    expect_status "$what" client 20 0 server
    expect_status "$what" server 20 0 client
    expect_output "$what" client "$5"
    expect_output "$what" server ''
}

for address in "${addresses[@]}"; do
    sum "$address" "$address" 17 25 '17 + 25 = 42'
    sum $any "$address" 0x10 010 '16 + 8 = 24'
    sum $any "$address" 4294967295 2 '4294967295 + 2 = 1'

    start check "$check" "$address"
    expect_status "check of $address" check 20 0
    expect_output "check of $address" check \
        "$address: a route through device anywarp0 (no host was asked)"
done
sum $any localhost 1 2 '1 + 2 = 3'

# wrong_usage COMMAND...
wrong_usage()
{
    start wrong "$@"
    expect_status "$*" wrong 20 2
    expect_error "$*" wrong "^usage: ${1##*/} "
}
wrong_usage "$client"
wrong_usage "$client" 127.0.0.1 1
wrong_usage "$client" 127.0.0.1 1 2 3
wrong_usage "$client" 127.0.0.1 1 4294967296
wrong_usage "$client" 127.0.0.1 1 two
wrong_usage "$client" 127.0.0.1 '' 2
wrong_usage "$client" -p
wrong_usage "$client" -x 127.0.0.1 1 2
wrong_usage "$client" 127.0.0.1 1 -- -2
wrong_usage "$server" 127.0.0.1
wrong_usage "$server" -x
wrong_usage "$check"
wrong_usage "$check" 127.0.0.1 127.0.0.1
wrong_usage "$check" --help
wrong_usage "$check" -p
wrong_usage "$check" -p '' 127.0.0.1
wrong_usage "$check" -t 0 127.0.0.1
wrong_usage "$check" -t 1s 127.0.0.1

# fails WHAT PATTERN COMMAND...
fails()
{
    local what=$1 pattern=$2
    shift 2
    start failing "$@"
    expect_status "$what" failing 20 1
    expect_error "$what" failing "^${1##*/}: .*$pattern"
}
port=$(free_port)
fails 'a port that refuses' 'RDMA_CM_EVENT_REJECTED: Connection refused' "$client" -p "$port" 127.0.0.1 1 2
fails 'no such host' 'not-a-host' "$client" -p "$port" not-a-host..invalid 1 2
fails 'no such host' 'not-a-host' "$check" not-a-host..invalid
fails 'an address of nobody here' 'rdma_bind_addr' "$server" -a 192.0.2.1 -p "$port"
fails 'no such port' 'no-such-port' "$server" -p no-such-port

start_server server "$port" "$server" -a 127.0.0.1 -p "$port"
fails 'a port in use' 'Address already in use' "$server" -a 127.0.0.1 -p "$port"
stop server

# The check connects, and the server goes on. A route alone is no server.
fails 'check of a port that refuses' 'RDMA_CM_EVENT_REJECTED: Connection refused' "$check" -p "$port" 127.0.0.1
start_server server "$port" "$BUILDDIR/src/tools/bin/rping" -s -P -a 127.0.0.1 -p "$port"
for _ in 1 2; do
    start check "$check" -p "$port" 127.0.0.1
    expect_status 'check of a server' check 20 0 server
    expect_output 'check of a server' check "127.0.0.1 port $port: connected through device anywarp0"
done
stop server

# Nor is what knows TCP only: one that waits, and one that speaks.
for says in '' 'SSH-2.0-none'; do
    wanted=${says:+RDMA_CM_EVENT_CONNECT_ERROR: Protocol error}
    start_server server "$port" python3 -c 'import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
peer, _ = listener.accept()
peer.sendall(sys.argv[2].encode())
while peer.recv(100):
    pass' "$port" "$says"
    before=$SECONDS
    fails "check of a server without RDMA${says:+ that speaks}" \
        "${wanted:-no answer in time}" "$check" -t 1 -p "$port" 127.0.0.1
    [ $((SECONDS - before)) -lt 10 ] || failed 'the check took too long' failing
    ended server 10
done

# A server that speaks of nothing that the client can write to.
if command -v rping >/dev/null; then
    start_server other "$port" rping -s -a 127.0.0.1 -p "$port"
    fails 'another server' 'not rdma_sum_server' "$client" -p "$port" 127.0.0.1 1 2
    ended other 10
fi

# Killed while the client connects: TCP has accepted, the program never will.
start_server server "$port" "$server" -a 127.0.0.1 -p "$port"
kill -STOP "${pids[server]}"
start client "$client" -p "$port" 127.0.0.1 1 2
connected()
{
    grep -qE "^ *[0-9]+: [0-9A-F]+:[0-9A-F]{4} 0100007F:$(printf %04X "$port") 01 " /proc/net/tcp
}
within 10 connected || failed 'the client does not connect' client
kill -KILL "${pids[server]}"
ended server 10
expect_status 'server killed before it accepts' client 20 1
expect_error 'server killed before it accepts' client '^rdma_sum_client: RDMA_CM_EVENT_REJECTED: '

# Killed at any other moment: the other end says so or was done, and never hangs.
for delay in 0 .002 .004 .006 .008 .01 .015 .02 .03 .05; do
    for victim in server client; do
        other=client
        [ $victim = server ] || other=server
        start_server server "$port" "$server" -a 127.0.0.1 -p "$port"
        start client "$client" -p "$port" 127.0.0.1 1 2
        sleep $delay
        kill -KILL "${pids[$victim]}" 2>/dev/null
        ended $victim 10
        # A server that no client has reached waits for one.
        if [ $victim = client ] && ! within 1 gone server; then
            start client "$client" -p "$port" 127.0.0.1 1 2
            ended client 10
        fi
        ended $other 20
        case $status in
        0) [ ! -s "$dir/$other.err" ] || failed "success with a message, $victim killed" $other ;;
        1) [ -s "$dir/$other.err" ] || failed "failure without a message, $victim killed" $other ;;
        *) failed "exit status $status when the $victim was killed" $other ;;
        esac
    done
done

# Without a device nothing works, and that is what they say.
mkdir "$dir/drivers"
export IBV_CONFIG_DIR=$dir/drivers
fails 'client, no device' 'No such device' "$client" 127.0.0.1 1 2
fails 'server, no device' 'No such device' "$server"
fails 'check, no device' 'No such device' "$check" 127.0.0.1
unset IBV_CONFIG_DIR

finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Our own rping: every option, in both roles, with itself and with the stock one; wrong arguments;
# peers that are not there, are something else, or are killed.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"

# Not what libtool has put before them: that runs other programs, which leak.
programs=$BUILDDIR/examples/.libs
rping=$BUILDDIR/src/tools/bin/.libs/rping
no_leaks=use_sigaltstack=0:detect_leaks=1

addresses=(127.0.0.1)
! grep -qs '^0*1 ' /proc/net/if_inet6 || addresses+=(::1)

# expect_pings WHAT NAME COUNT: every ping is printed once, in order.
expect_pings()
{
    local numbers
    numbers=$(sed -nE 's/^(server )?ping data: rdma-ping-([0-9]+): .*/\2/p' "$dir/$2")
    [ "$numbers" = "$(seq 0 $(($3 - 1)))" ] || failed "$1: not all pings of $2" "$2"
}

# expect_error WHAT NAME PATTERN: a line on standard error is like that.
expect_error()
{
    grep -qE -- "$3" "$dir/$2.err" || failed "$1: no error like \"$3\"" "$2"
}

# pair SERVER CLIENT ADDRESS OPTION...: the options are for both
pair()
{
    local server=$1 client=$2 address=$3 what="${2##*/} -c of ${1##*/} -s at $3: ${*:4}"
    shift 3
    port=$(free_port)
    ASAN_OPTIONS=$leaks start_server server "$port" "$server" -s -a "$address" -p "$port" -v "$@"
    ASAN_OPTIONS=$leaks start client "$client" -c -a "$address" -p "$port" -v -V "$@"
    expect_status "$what" client 30 0 server
    expect_status "$what" server 20 0 client
    expect_pings "$what" client $pings
    expect_pings "$what" server $pings
}

pings=20
leaks=$no_leaks
for address in "${addresses[@]}"; do
    pair "$rping" "$rping" "$address" -C $pings
    pair "$rping" "$rping" "$address" -C $pings -S 23 -q
    pair "$rping" "$rping" "$address" -C $pings -S 65535 -d -t 32
done
expect_error 'each step is told' client '^rping: RDMA Read|^rping: send completed$'
expect_error 'each step is told' server '^rping: RDMA Write of 65535 bytes$'

# What -v prints is what the stock one prints, to the letter.
leaks=$ASAN_OPTIONS
stock=$(command -v rping)
if [ -n "$stock" ]; then
    pings=60 # the letters have come round
    for address in "${addresses[@]}"; do
        for options in '' '-S 23' '-S 100' '-S 65535'; do
            # shellcheck disable=SC2086
            {
                pair "$stock" "$rping" "$address" -C $pings $options
                mv "$dir/client" "$dir/client.ours"
                pair "$rping" "$stock" "$address" -C $pings $options
            }
            cmp -s "$dir/client" "$dir/client.ours" ||
                failed "client $options: prints something else" client client.ours
        done
    done
    pair "$stock" "$rping" 127.0.0.1 -C $pings -q
fi

# Server and client count for themselves: the shorter count ends it.
pings=5
port=$(free_port)
start_server server "$port" "$rping" -s -a 127.0.0.1 -p "$port" -v -C 5
start client "$rping" -c -a 127.0.0.1 -I 127.0.0.2 -p "$port" -v -C 10
expect_status 'a server of 5 pings' client 20 1
expect_status 'a server of 5 pings' server 20 0
expect_pings 'a server of 5 pings' server 5
expect_pings 'a server of 5 pings' client 5
expect_error 'a server of 5 pings' client '^rping: the server has disconnected after 5 pings$'

# -I: the address that the server sees.
port=$(free_port)
start_server server "$port" "$rping" -s -a 127.0.0.1 -p "$port"
start client "$rping" -c -a 127.0.0.1 -I 127.0.0.2 -p "$port" -v
from()
{
    grep -qE "^ *[0-9]+: 0200007F:[0-9A-F]{4} 0100007F:$(printf %04X "$port") 01 " /proc/net/tcp
}
within 10 from || failed '-I 127.0.0.2: not the source' client
within 10 lines_at_least client 10 || failed 'no pings' client server # so it is accepted, too
kill -KILL "${pids[client]}"
ended client 10
ended server 20
[ $status = 0 ] || [ $status = 1 ] || failed "a client killed: exit status $status" server
expect_error 'a client killed' server '^rping: the client has disconnected (after|in the middle of)'

port=$(free_port)
start_server server "$port" "$rping" -s -a 127.0.0.1 -p "$port"
start client "$rping" -c -a 127.0.0.1 -p "$port" -v
within 10 lines_at_least client 10 || failed 'no pings' client server
kill -KILL "${pids[server]}"
ended server 10
expect_status 'a server killed' client 20 1
expect_error 'a server killed' client '^rping: the server has disconnected after [0-9]+ pings$'

# Persistent: several at once, one after another, and one that is killed.
port=$(free_port)
start_server server "$port" "$rping" -s -P -a 127.0.0.1 -p "$port"
for turn in 1 2; do
    start doomed "$rping" -c -a 127.0.0.1 -p "$port" -v
    for i in {1..6}; do
        start "client$i" "$rping" -c -a 127.0.0.1 -p "$port" -v -V -C 100
    done
    within 10 lines_at_least doomed 10 || failed 'no pings' doomed server
    kill -KILL "${pids[doomed]}"
    ended doomed 10
    for i in {1..6}; do
        expect_status "client $i of six, turn $turn" "client$i" 30 0 server
        expect_pings "client $i of six, turn $turn" "client$i" 100
    done
done
stop server

# wrong_usage ARGUMENT...
wrong_usage()
{
    start wrong "$rping" "$@"
    expect_status "rping $*" wrong 20 2
    expect_error "rping $*" wrong '^usage: rping '
}
wrong_usage
wrong_usage -s -c -a 127.0.0.1
wrong_usage -c
wrong_usage -s extra
wrong_usage -s -x
wrong_usage -s -p
wrong_usage -s -S 22
wrong_usage -s -S 65536
wrong_usage -s -C -1
wrong_usage -s -C ten
wrong_usage -s -t 256

# fails PATTERN ARGUMENT...
fails()
{
    local pattern=$1
    shift
    start failing "$rping" "$@"
    expect_status "rping $*" failing 20 1
    expect_error "rping $*" failing "^rping: .*$pattern"
}
port=$(free_port)
fails 'rdma_connect: Connection refused' -c -a 127.0.0.1 -p "$port"
fails 'not-a-host' -c -a not-a-host..invalid
fails 'not-a-host' -c -a 127.0.0.1 -I not-a-host..invalid
fails 'no-such-port' -s -p no-such-port
fails 'rdma_bind_addr' -s -a 192.0.2.1
start_server server "$port" "$rping" -s -P -a 127.0.0.1 -p "$port"
fails 'Address already in use' -s -a 127.0.0.1 -p "$port"

# Another program at the other end.
start other "$programs/ping" -p "$port" 127.0.0.1
expect_status 'rping -s and ping' other 20 1
start other "$programs/ping" -s 8 -p "$port" 127.0.0.1
expect_status 'rping -s and ping -s 8' other 20 1
expect_error 'rping -s and ping -s 8' server 'a message of 8 bytes: the other end is not rping$'
expect_error 'rping -s and ping' server '^rping: receive: local length error$'
stop server
port=$(free_port)
start_server other "$port" "$programs/ping" -p "$port"
fails 'what came back is not what was sent' -c -a 127.0.0.1 -p "$port" -C 1 -V
ended other 20

finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs between two hosts: two network namespaces, joined by a pair of interfaces.

# The clients' host is a namespace of its own as well.
if [ "${1-}" != inside ]; then
    unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here" && exit 77; }
    exec unshare -n bash "$0" inside
fi

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/apps/hosts.sh
. "$SRCDIR/tests/apps/hosts.sh"
need ip nsenter rping ucmatose cmtime rdma_client rdma_xclient ibv_rc_pingpong

two_hosts

# serve PROGRAM OPTION...: on the other host, on $port, a new one.
serve()
{
    port=$(free_port)
    start_server server "$port" nsenter -t "$host" -n "$@" -p "$port"
}

# client PROGRAM OPTION...: on this host, or on that of the servers if $loopback is set.
loopback=
client()
{
    start client ${loopback:+nsenter -t "$host" -n} "$@" -p "$port"
    expect_status "$*" client 60 0 server
}

# works SERVER CLIENT ADDRESS OPTION...: the options are for both; a server that listens to IPv4 if
# not told otherwise is told otherwise.
works()
{
    local server=$1 client=$2 address=$3 bind=()
    shift 3
    if [[ $address = *:* ]]; then
        [ "$server" = ucmatose ] && bind=(-b "$address") || bind=(-s "$address")
    fi
    serve "$server" "${bind[@]}" "$@"
    client "$client" -s "$address" "$@"
    expect_status "$server ${bind[*]} $*" server 20 0 client
}

for address in 127.0.0.1 ::1 10.77.0.2 fd77::2; do
    case $address in 127.0.0.1 | ::1) loopback=yes ;; esac
    works ucmatose ucmatose $address
    works ucmatose ucmatose $address -c 64
    works ucmatose ucmatose $address -m
    works ucmatose ucmatose $address -C 1000
    works ucmatose ucmatose $address -c 64 -m -C 20 -S 20000
    works rdma_server rdma_client $address
    loopback=
done
works rdma_xserver rdma_xclient 10.77.0.2
works rdma_xserver rdma_xclient 10.77.0.2 -c r

# From an address of the client's choice.
serve ucmatose
client ucmatose -s 10.77.0.2 -b 10.77.0.1
expect_status "ucmatose from 10.77.0.1" server 20 0 client

for address in 10.77.0.2 fd77::2; do
    serve rping -s -C 50 -V -S 20000 -a $address
    client rping -c -C 50 -V -S 20000 -a $address
    expect_status "rping to $address" server 20 0 client
done

# Its server stays.
if cmtime_fits; then
    serve cmtime
    client cmtime -s 10.77.0.2 -c 1000
    [ "$(grep -cE '^[a-z ]+: +[0-9.]+' "$dir/client")" = 7 ] || failed "cmtime: no times" client
    [ ! -s "$dir/client.err" ] || failed "cmtime: errors" client
    stop server
fi

# Without rdma_cm: the two tell each other GID and number.
for options in '' '-e -n 2000' '-s 1048576 -n 50'; do
    # shellcheck disable=SC2086 # options are words
    serve ibv_rc_pingpong -g 1 $options
    # shellcheck disable=SC2086
    client ibv_rc_pingpong -g 1 $options 10.77.0.2
    expect_status "ibv_rc_pingpong $options" server 20 0 client
done

# The same by their other addresses, which have the same place in both tables of GIDs.
for gid in fd77: fe80:; do
    index=$("$ANYWARP" run ibv_devinfo -v | sed -n "s/.*GID\[ *\([0-9]*\)\]:[[:space:]]*$gid.*/\1/p")
    serve ibv_rc_pingpong -g "$index"
    client ibv_rc_pingpong -g "$index" 10.77.0.2
    expect_status "ibv_rc_pingpong by $gid" server 20 0 client
    grep -q "GID $gid" "$dir/client" || failed "no GID $gid" client
done

# fails STATUS PATTERN COMMAND...: soon, and says so.
fails()
{
    local want=$1 pattern=$2
    shift 2
    start client "$@"
    ended client 20
    [ "$status" = "$want" ] || failed "$*: exit status $status, wanted $want" client
    grep -qE -- "$pattern" "$dir/client" "$dir/client.err" || failed "$*: not /$pattern/" client
}

# Nobody listens; nobody is there; nobody knows the way. The status is what remains of -errno.
fails 145 'RDMA_CM_EVENT_REJECTED' ucmatose -s 10.77.0.2 -p "$(free_port)"
fails 143 'RDMA_CM_EVENT_UNREACHABLE, error: -113' ucmatose -s 10.77.0.3
fails 155 'RDMA_CM_EVENT_ADDR_ERROR, error: -101' ucmatose -s 10.78.0.2

# The cable is cut: whose send has no answer is told so in the time of the attributes (0.5 s), not in
# that of TCP. Who only waits for a receive waits on, as on InfiniBand.
packets()
{
    ip -s link show near | awk 'found { print $2; exit } /TX:/ { found = 1 }'
}
moving()
{
    [ "$(packets)" -gt $((before + 3000)) ]
}
before=$(packets)
serve ibv_rc_pingpong -g 1 -n 1000000000
start client ibv_rc_pingpong -g 1 -n 1000000000 10.77.0.2 -p "$port"
within 20 moving || failed "ibv_rc_pingpong does not begin" client
there ip link set far down
one_gone()
{
    gone client || gone server
}
within 30 one_gone
for end in client server; do
    gone $end || continue
    ended $end 1
    grep -q 'Failed status transport retry counter exceeded (12)' "$dir/$end.err" ||
        failed "ibv_rc_pingpong with the cable cut: exit status $status, no status 12" $end
    told=yes
done
[ "${told-}" ] || failed "ibv_rc_pingpong with the cable cut: both wait" client server
for end in "${!pids[@]}"; do
    [ "$end" = host ] || { kill -KILL "${pids[$end]}" && ended "$end" 10; }
done

finish

# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Two hosts for scripts that have read tests/apps/lib.sh and run in a network namespace of their own,
# which is that of the clients: 10.77.0.1, fd77::1 and fe80::1; the servers' addresses end in 2.
# shellcheck disable=SC2154

apart()
{
    [ "$(readlink "/proc/$host/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# there COMMAND...: on the servers' host
there()
{
    nsenter -t "$host" -n "$@"
}

# Replaces that of tests/setup.sh: the ports that count are the servers'.
listening()
{
    grep -qhE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " "/proc/$host/net/tcp"*
}

# plug NAME ADDRESS-END COMMAND-PREFIX...: gives the end of the cable its addresses. All can be used at
# once: none is looked for on the other host first, which takes a second in which datagrams get lost.
plug()
{
    local name=$1 end=$2 address
    shift 2
    "$@" ip link set "$name" addrgenmode none || return
    for address in "10.77.0.$end/24" "fd77::$end/64 nodad" "fe80::$end/64 nodad"; do
        # shellcheck disable=SC2086
        "$@" ip addr add $address dev "$name" || return
    done
    "$@" ip link set "$name" up && "$@" ip link set lo up
}

# two_hosts: the servers' is kept by a process that sleeps, $host.
two_hosts()
{
    unshare -n sleep 3600 &
    pids[host]=$!
    host=${pids[host]}
    within 10 apart || skip "no second network namespace"
    {
        ip link add near type veth peer name far netns "$host" &&
            plug near 1 && plug far 2 there
    } || skip "no network can be made in a namespace"
}

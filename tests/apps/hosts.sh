# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Two hosts for scripts that have read tests/apps/lib.sh and run in a network namespace of their own,
# which is that of the clients: 10.77.0.1 and fd77::1; that of the servers is 10.77.0.2 and fd77::2.
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

# two_hosts: the servers' is kept by a process that sleeps, $host.
two_hosts()
{
    unshare -n sleep 3600 &
    pids[host]=$!
    host=${pids[host]}
    within 10 apart || skip "no second network namespace"
    {
        ip link add near type veth peer name far netns "$host" &&
            ip addr add 10.77.0.1/24 dev near && ip addr add fd77::1/64 dev near nodad &&
            ip link set near up && ip link set lo up &&
            there ip addr add 10.77.0.2/24 dev far && there ip addr add fd77::2/64 dev far nodad &&
            there ip link set far up && there ip link set lo up
    } || skip "no network can be made in a namespace"
}

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Between two hosts a link that loses 2 of 100 datagrams: UCX completes over them, as it sends again;
# connections do not notice.

# The clients' host is a namespace of its own as well.
if [ "${1-}" != inside ]; then
    unshare -n true 2>/dev/null || { echo "SKIP: no network namespaces here" && exit 77; }
    exec unshare -n bash "$0" inside
fi

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/apps/hosts.sh
. "$SRCDIR/tests/apps/hosts.sh"
need ip nsenter python3 ucx_perftest ucmatose
! sanitized || skip "UCX sees no device: a sanitizer has to be the first library"
compgen -G '/usr/lib/*/ucx/libuct_ib.so*' >/dev/null || skip "UCX without libuct_ib"

unshare -n sleep 3600 &
pids[host]=$!
host=${pids[host]}
within 10 apart || skip "no second network namespace"
python3 "$SRCDIR/tests/apps/lossy_link.py" "$host" 2 >"$dir/relay" 2>"$dir/relay.err" &
pids[relay]=$!
within 10 grep -q ready "$dir/relay" || skip "no TUN devices: $(tail -n 1 "$dir/relay.err")"
{
    ip addr add 10.77.0.1/24 dev near && ip link set near up && ip link set lo up &&
        there ip addr add 10.77.0.2/24 dev far && there ip link set far up && there ip link set lo up
} || skip "no network can be made in a namespace"

export ANYWARP_DEVICES=anyroce0=roce:near UCX_NET_DEVICES=anyroce0:1
servers=(nsenter -t "$host" -n env ANYWARP_DEVICES=anyroce0=roce:far)

for how in 'ud_verbs tag_lat' 'ud_verbs ucp_am_lat' 'rc_v tag_lat' 'rc_v ucp_put_lat'; do
    read -r transport what <<<"$how"
    export UCX_TLS=$transport,self
    port=$(free_port)
    start_server server "$port" "${servers[@]}" "${ucx_perftest[@]}" -t "$what" -n 500 -w 10 -p "$port"
    start client "${ucx_perftest[@]}" -t "$what" -n 500 -w 10 -p "$port" 10.77.0.2
    expect_status "UCX, $how" client 120 0 server
    expect_status "UCX, $how" server 60 0 client
done

port=$(free_port)
start_server server "$port" "${servers[@]}" ucmatose -p "$port" -c 20
start client ucmatose -s 10.77.0.2 -p "$port" -c 20
expect_status ucmatose client 60 0 server
expect_status ucmatose server 30 0 client

kill "${pids[relay]}"
ended relay 10
tail -n 1 "$dir/relay"
grep -q '^[1-9][0-9]* lost' "$dir/relay" || failed "the link lost nothing" relay
finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Peers of queue pairs by number that are stopped for a while, and that are killed.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ibv_rc_pingpong ib_write_bw

stopped_s=${STOPPED_S:-3}

# begin SECONDS PROGRAM OPTION...: two that have begun so long ago, and go on.
begin()
{
    local port seconds=$1
    shift
    port=$(free_port)
    start_server server "$port" "$@" -p "$port"
    start client "$@" -p "$port" 127.0.0.1
    sleep "$seconds"
    running client || failed "$*: it was over too soon" client
}

# A peer that is stopped is alive: longer than any time of the attributes, and nothing fails.
begin 0.3 ibv_rc_pingpong -g 1 -n 300000
"$ANYWARP" stat ibv_rc_pingpong | grep -qE ' peer_qp 0x[0-9a-f]{6} dial connected ' ||
    failed 'anywarp stat does not tell of the number' client
"$ANYWARP" stat ibv_rc_pingpong | grep -qE ' type RC device iWARP ' ||
    failed 'anywarp stat does not tell the type' client
kill -STOP "${pids[server]}"
sleep "$stopped_s"
running client || failed "it does not wait for one that is stopped" client
kill -CONT "${pids[server]}"
expect_status "stopped for $stopped_s s" client 120 0 server
expect_status "stopped for $stopped_s s" server 20 0 client

# UC on a RoCE device, which stat tells apart.
export ANYWARP_DEVICES=anyroce0=roce:
begin 0.3 ibv_uc_pingpong -d anyroce0 -g 0 -n 5000000
"$ANYWARP" stat ibv_uc_pingpong | grep -qE ' type UC device RoCE ' ||
    failed 'anywarp stat does not tell UC from RC' client
"$ANYWARP" top --delay 0.1 >"$dir/top" </dev/null
grep -qE '^ +[0-9]+ ibv_uc_pingpong +0x[0-9a-f]{6} UC +RoCE +RTS ' "$dir/top" ||
    failed 'anywarp top does not tell UC from RC' top
unset ANYWARP_DEVICES
kill -KILL "${pids[server]}" "${pids[client]}"

# One that is killed is missed at the next send: the time of perftest's attributes is 0.5 s. (Who only
# waits for an answer waits on, as on InfiniBand.)
is_missed()
{
    begin "$1" ib_write_bw -F -n 5000000
    kill -KILL "${pids[server]}"
    ended server 10
    ended client 20
    [[ $status != none ]] && grep -q 'Failed status 12' "$dir/client" "$dir/client.err"
}

# On a busy machine the two may need longer to begin: then their sockets tell, and nothing is learned.
is_missed 1 || is_missed 4 || is_missed 12 || failed 'the server was killed: no status 12' client

finish

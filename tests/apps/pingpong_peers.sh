#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Peers of queue pairs by number that are stopped for a while, and that are killed.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ibv_rc_pingpong

stopped_s=${STOPPED_S:-3}

# begin ROUNDS: two that play for so long, and have begun to.
begin()
{
    port=$(free_port)
    start_server server "$port" ibv_rc_pingpong -g 1 -n "$1" -p "$port"
    start client ibv_rc_pingpong -g 1 -n "$1" -p "$port" 127.0.0.1
    sleep 0.3
    running client || failed 'it was over too soon' client
}

# A peer that is stopped is alive: longer than any time of the attributes, and nothing fails.
begin 100000
kill -STOP "${pids[server]}"
sleep "$stopped_s"
running client || failed "it does not wait for one that is stopped" client
kill -CONT "${pids[server]}"
expect_status "stopped for $stopped_s s" client 120 0 server
expect_status "stopped for $stopped_s s" server 20 0 client

# One that is killed is missed at the next send: the time of ibv_rc_pingpong's attributes is 0.5 s.
begin 10000000
kill -KILL "${pids[server]}"
ended server 10
ended client 20
[ "$status" = 1 ] || failed "the server was killed, and the client ends with $status" client
grep -q 'transport retry counter exceeded (12)' "$dir/client.err" || failed 'the status is another' client

finish

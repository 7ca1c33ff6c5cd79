#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whoever has nothing to do sleeps: no CPU time and no wake-up in any thread.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping

# activity PID: thread, switches, CPU time in ticks; one line for each thread.
activity()
{
    local task
    for task in /proc/"$1"/task/*; do
        printf '%s: %s switches, %s ticks\n' "${task##*/}" \
            "$(awk '/^voluntary_ctxt_switches/ { print $2 }' "$task/status")" \
            "$(sed 's/.*) //' "$task/stat" | awk '{ print $12 + $13 }')"
    done
}

# expect_idle WHAT NAME
expect_idle()
{
    local before after
    # What was under way ends; the engine notices that nobody polls any more.
    sleep 1.5
    # One look at what TCP has sent may still be due, some seconds after the last message.
    for _ in 1 2; do
        before=$(activity "${pids[$2]}")
        sleep 3
        after=$(activity "${pids[$2]}")
        [ "$before" != "$after" ] || break
    done
    if [ -z "$before" ] || [ "$before" != "$after" ]; then
        failed "$1 is not idle" "$2"
        printf 'before:\n%s\nafter 3 s:\n%s\n' "$before" "$after"
    fi
}

# idle_while_stopped IDLE STOPPED: one end sleeps while the other, amid pings, is stopped.
idle_while_stopped()
{
    local lines
    kill -STOP "${pids[$2]}"
    expect_idle "a connected $1" "$1"
    lines=$(wc -l <"$dir/$1")
    kill -CONT "${pids[$2]}"
    within 20 lines_at_least "$1" $((lines + 1000)) || failed "$1 does not go on" "$1" "$2"
}

port=$(free_port)
start_server server "$port" rping -s -v -a 127.0.0.1 -p "$port"
expect_idle "a listening server" server

start client rping -c -v -a 127.0.0.1 -p "$port"
within 20 lines_at_least client 1000 || failed "no pings" client server
idle_while_stopped server client
idle_while_stopped client server

kill "${pids[client]}"
ended client 10
ended server 10
[ $status != none ] || failed "the server outlives the client" server

finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock perftest: every operation, size and way to post and to wait; both ends end well.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ib_send_bw

preload=$dir/preload.so
${CC:-cc} -shared -fPIC -D_GNU_SOURCE -o "$preload" "$SRCDIR/tests/apps/perftest_preload.c" -ldl ||
    skip "perftest_preload.c does not build"

# attempt PROGRAM OPTION...: starts a server and its client; returns when the client is gone.
attempt()
{
    local port
    port=$(free_port)
    start_server server "$port" -e "LD_PRELOAD=$preload" "$@" -R -F -p "$port"
    start client -e "LD_PRELOAD=$preload" "$@" -R -F -p "$port" 127.0.0.1
    within 30 gone client
}

# order NAME END: ports of the QPs of a program, in the order in which it made them.
order()
{
    "$ANYWARP" stat "${pids[$1]}" | grep -o " $2 [^ ]*" | grep -o '[0-9]*$'
}

# Several connections that are asked for at once may be asked for in another order than they reach
# the server in, by which perftest pairs the credits of ib_send_bw: both ends wait for ever then.
crossed()
{
    running client && running server && [ "$(order client local)" != "$(order server peer)" ]
}

# pair API PROGRAM OPTION...: API is whether ibv_wr_*() is used.
pair()
{
    local api=$1 rows=1
    shift
    local what="$*"
    [[ $what != *' -a'* ]] || rows=23
    attempt "$@"
    for _ in {1..5}; do
        crossed || break
        kill -KILL "${pids[@]}" 2>/dev/null
        wait "${pids[@]}" 2>/dev/null
        attempt "$@"
    done
    expect_status "$what" client 1 0 server
    expect_status "$what" server 10 0 client
    [ "$(grep -cE '^ [0-9]+ +[0-9]+ ' "$dir/client")" = $rows ] ||
        failed "$what: not $rows results" client
    grep -q "ibv_wr\* API *: $api" "$dir/client" || failed "$what: ibv_wr API is not $api" client
}

# pairs API: for each line of the input.
pairs()
{
    local words
    while read -ra words; do
        pair "$1" "${words[@]}"
    done
}

# ib_send_bw -e, out of credits, sleeps for a completion, but a credit is an RDMA Write: if that comes
# later it sleeps for ever. The peer gives one for each third of its 500 receives: two thirds have to
# take longer than its program may wait for a processor. Of more messages than receives, as otherwise
# it may sleep for a completion that it has taken.
pairs OFF <<'CASES'
ib_send_bw -a -n 10
ib_send_bw -a -n 10 -b
ib_send_bw -q 8 -b -s 4096 -n 200
ib_send_bw -q 4 -b -e -s 262144 -n 200
ib_send_bw -e -s 1048576 -n 600
ib_send_bw -s 8388608 -n 10 -t 2 -r 4
ib_send_bw -r 3 -t 1 -s 64 -n 200
ib_send_bw -l 4 -Q 1 -s 64 -n 400
ib_send_bw -Q 50 -s 64 -n 1000
ib_send_bw --use-srq -b -s 1024 -n 500
ib_write_bw -a -n 10
ib_write_bw -q 8 -b -s 4096 -n 200
ib_write_bw -s 8388608 -n 10 -b
ib_write_bw -t 1 -s 64 -n 500
ib_write_bw -D 1 -s 4096
ib_write_bw --mr_per_qp -q 4 -s 4096 -n 200
ib_read_bw -a -n 10
ib_read_bw -q 8 -b -s 4096 -n 200
ib_read_bw -q 4 -b -e -n 200
ib_read_bw -o 1 -s 64 -n 500
ib_read_bw -s 8388608 -n 10 -b
ib_atomic_bw -n 1000
ib_atomic_bw -A CMP_AND_SWAP -q 8 -b -n 200
ib_atomic_bw -q 4 -b -e -n 200
ib_send_lat -a -n 20
ib_send_lat -e -n 200
ib_send_lat --use-srq -n 200
ib_write_lat -a -n 20
ib_read_lat -a -n 20
ib_read_lat -e -n 200
ib_atomic_lat -n 200
ib_atomic_lat -A CMP_AND_SWAP -e -n 200
CASES

# With a part number that perftest knows.
export PERFTEST_PART_ID=4119
pairs ON <<'CASES'
ib_send_bw -a -n 10
ib_send_bw -q 4 -b -e -s 262144 -n 200
ib_send_bw -I 512 -s 512 -n 1000
ib_send_bw -l 8 -s 64 -n 800
ib_write_bw -q 8 -b -s 4096 -n 200
ib_write_bw -I 64 -s 64 -n 1000
ib_read_bw -q 4 -b -e -n 200
ib_atomic_bw -q 4 -b -n 200
ib_send_lat -a -n 20
ib_write_lat -I 64 -s 64 -n 200
ib_read_lat -n 200
ib_atomic_lat -n 200
CASES
pairs OFF <<'CASES'
ib_send_bw --use_old_post_send -I 64 -s 64 -n 1000
ib_send_lat --use_old_post_send -I 512 -s 512 -n 200
ib_write_lat --use_old_post_send -I 64 -s 64 -n 200
CASES

finish

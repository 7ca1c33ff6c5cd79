#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs that use no rdma_cm: they tell each other GID and QP number over a socket of their
# own. Both ends end well.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need ibv_rc_pingpong ibv_uc_pingpong ibv_srq_pingpong ib_write_bw

# With a sanitizer, all sizes one after another would take minutes.
all_sizes=yes
! "$ANYWARP" env | grep -v libanywarp-paths | grep -q LD_PRELOAD || all_sizes=no
left_out()
{
    [ $all_sizes = no ] && [[ " $options " = *' -a '* ]]
}

# pair PROGRAM OPTION...
pair()
{
    local port
    port=$(free_port)
    start_server server "$port" "$@" -p "$port"
    start client "$@" -p "$port" 127.0.0.1
    expect_status "$*" client 90 0 server # two that spin, where others do as well
    expect_status "$*" server 30 0 client
}

while read -r options; do
    # shellcheck disable=SC2086 # options are words
    pair ibv_rc_pingpong -g 1 $options
done <<'EOF'

-e
-c
-n 10000
-s 1
-s 1048576 -n 200
-r 1 -n 100
-l 0 -m 2048
EOF
while read -r options; do
    # shellcheck disable=SC2086 # options are words
    pair ibv_srq_pingpong -g 1 $options
done <<'EOF'

-e
-q 1
EOF

# Unreliable connections.
for options in '' -e '-n 10000' '-s 1048576 -n 200'; do
    # shellcheck disable=SC2086 # options are words
    pair ibv_uc_pingpong -g 1 $options
done
for program in 'ib_send_lat -n 100' 'ib_write_lat -n 100' 'ib_write_bw -n 1000' 'ib_write_bw -q 8 -n 500'; do
    # shellcheck disable=SC2086 # options are words
    pair $program -F -c UC
done

# On a RoCE device, by both its GIDs, and with one end on each kind.
export ANYWARP_DEVICES='anywarp0=iwarp: anyroce0=roce:'
for options in '-g 0' '-g 1 -e' '-g 0 -n 10000' '-g 0 -s 1048576 -n 200'; do
    # shellcheck disable=SC2086 # options are words
    pair ibv_rc_pingpong -d anyroce0 $options
done
pair ibv_srq_pingpong -d anyroce0 -g 0
for operation in send write read atomic; do
    pair ib_${operation}_bw -F -d anyroce0 -n 1000
    pair ib_${operation}_lat -F -d anyroce0 -n 100
done
pair ibv_uc_pingpong -d anyroce0 -g 0
for options in '-n 1000' '-b -n 1000' '-e -s 64 -n 5000' '-q 4 -n 500'; do
    # shellcheck disable=SC2086 # options are words
    pair ib_send_bw -F -d anyroce0 -c UC $options
done
pair ib_write_bw -F -d anyroce0 -c UC -n 1000
pair ib_send_lat -F -d anyroce0 -c UC -n 100
pair ib_send_bw -F -d anyroce0 --use-srq -n 1000
pair ib_write_bw -F -d anyroce0 -q 8 -n 500
port=$(free_port)
start_server server "$port" ibv_rc_pingpong -d anyroce0 -g 0 -p "$port"
start client ibv_rc_pingpong -d anywarp0 -g 1 -p "$port" 127.0.0.1
expect_status 'RoCE and iWARP' client 60 0 server
expect_status 'RoCE and iWARP' server 30 0 client
unset ANYWARP_DEVICES

# With ports that are given: a number without its last byte is the port.
number_of()
{
    sed -n 's/^ *local address:.*QPN 0x\([0-9a-f]*\)[0-9a-f][0-9a-f],.*/\1/p' "$dir/$1"
}
low=$(free_port)
export ANYWARP_PORTS=$low-$((low + 20))
pair ibv_rc_pingpong -g 1 -n 10
unset ANYWARP_PORTS
for name in server client; do
    port=$((0x$(number_of $name)))
    [ $port -ge "$low" ] && [ $port -le $((low + 20)) ] ||
        failed "a queue pair has port $port, not one from $low on" $name
done
port=$(free_port)
start_server server "$port" ibv_rc_pingpong -g 1 -p "$port"
ANYWARP_PORTS=$port start client ibv_rc_pingpong -g 1 -p "$port" 127.0.0.1
expect_status 'no port is free' client 20 1
stop server

# perftest up to 4.5-0.20, on an iWARP device without rdma_cm, forgets a memory region of ib_send_bw;
# its protection domain is busy then, as on an adapter, and it exits with 1, having measured. With
# a SRQ it takes the QP of a message from the receive's wr_id: of two, one may never get its credits.
has_measured()
{
    ended "$1" 60
    [ "$status" = 0 ] && return
    [ "$status" = 1 ] && [ "$(grep -c . "$dir/$1.err")" = 2 ] &&
        grep -q 'Failed to deallocate PD' "$dir/$1.err" ||
        failed "ib_send_bw $options: exit status $status" "$1"
}
while read -r options; do
    ! left_out || continue
    port=$(free_port)
    # shellcheck disable=SC2086 # options are words
    start_server server "$port" ib_send_bw -F $options -p "$port"
    # shellcheck disable=SC2086
    start client ib_send_bw -F $options -p "$port" 127.0.0.1
    has_measured client
    has_measured server
    grep -qE '^ *[0-9]+ +[0-9]+( +[0-9.]+){2}[[:space:]]+[0-9.]+' "$dir/client" ||
        failed "ib_send_bw $options: no result" client
done <<'EOF'
-n 1000
-e
-q 8
-b
-a -n 100
--use-srq
EOF

while read -r program options; do
    ! left_out || continue
    # shellcheck disable=SC2086 # options are words
    pair $program -F $options
done <<'EOF'
ib_send_lat
ib_send_lat -a -n 20
ib_send_lat -e
ib_send_lat --use-srq
ib_write_bw
ib_write_bw -q 8 -n 500
ib_write_bw -b
ib_write_bw -a -n 100
ib_write_lat
ib_read_bw
ib_read_bw -q 8
ib_read_bw -b -e
ib_read_lat
ib_read_lat -a -n 20
ib_read_bw -a -n 50
ib_write_lat -a -n 20
ib_atomic_bw
ib_atomic_bw -b
ib_atomic_bw -q 4 -e
ib_atomic_lat
EOF

finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stock programs on the system's own libibverbs and librdmacm, with anywarp where they look for the
# kernel's devices: with themselves, and with programs on our libraries.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping ucmatose ibv_devices ibv_devinfo rdma_xserver ib_send_lat ib_send_bw rstream riostream rcopy
compgen -G '/usr/lib/*/libibverbs/libipathverbs-rdmav*.so' >/dev/null ||
    skip 'no libipathverbs, which the system libibverbs would need'

system=--system-libraries

# pair SERVER-OPTION CLIENT-OPTION WHAT SERVER... -- CLIENT...: either option may be empty; PORT stands
# for one that is free.
pair()
{
    local server_option=$1 client_option=$2 what=$3 port server=()
    shift 3
    port=$(free_port)
    while [ "$1" != -- ]; do
        server+=("${1/PORT/$port}")
        shift
    done
    shift
    start_server server "$port" ${server_option:+"$server_option"} "${server[@]}"
    start client ${client_option:+"$client_option"} "${@/PORT/$port}"
    what+=" ${server_option:-ours} ${client_option:-ours}"
    expect_status "$what" client 60 0 server
    expect_status "$what" server 30 0 client
}

start list $system ibv_devices
expect_status devices list 20 0
grep -q anywarp0 "$dir/list" || failed 'ibv_devices does not show anywarp0' list

# What no command tells is not shown: the rest is the same.
start theirs $system /usr/bin/ibv_devinfo -v
expect_status devinfo theirs 20 0
start ours /usr/bin/ibv_devinfo -v
expect_status devinfo ours 20 0
differ=$(diff "$dir/ours" "$dir/theirs" | grep '^[<>]' |
    grep -vE 'completion.timestamp_mask|core.clock|device_cap_flags_ex|cq moderation|max_cq_|^< *$' |
    grep -vE 'comp_cntr|QP_ATTACH_|effective_speed') # of rdma-core 65
[ -z "$differ" ] || failed "ibv_devinfo -v differs: $differ" ours theirs

start untraced -e ANYWARP_UVERBS_TRACE="$dir/none/trace" $system /usr/bin/ibv_devinfo
expect_status 'a trace that cannot be written' untraced 20 0
grep -q "^anywarp: ANYWARP_UVERBS_TRACE=$dir/none/trace cannot be opened: no trace\$" "$dir/untraced.err" ||
    failed 'a trace that cannot be written is not told' untraced

ANYWARP_UVERBS_TRACE=$dir/trace
export ANYWARP_UVERBS_TRACE
rping=(rping -a 127.0.0.1 -p PORT -v -V -C 20)
pair $system $system rping "${rping[@]}" -s -- "${rping[@]}" -c
unset ANYWARP_UVERBS_TRACE
for line in 'GET_CONTEXT 4/2 ok' 'CREATE_ID 24/4 ok' 'REG_MR 12/3 ok' 'POST_SEND 26/1 ok'; do
    grep -qx "$line" "$dir/trace" || failed "no line in the trace: $line" trace
done
pair $system '' rping "${rping[@]}" -s -- "${rping[@]}" -c
pair '' $system rping "${rping[@]}" -s -- "${rping[@]}" -c

pair $system $system ucmatose ucmatose -c 5 -C 10 -p PORT -- \
    ucmatose -c 5 -C 10 -p PORT -s 127.0.0.1
pair $system $system rdma_xserver rdma_xserver -p PORT -- rdma_xclient -s 127.0.0.1 -p PORT

events='-n 600 -s 1048576'
for program in ib_{send,write,read,atomic}_{lat,bw} 'ib_send_lat -e' 'ib_read_lat -e' \
    'ib_atomic_lat -e' ib_{send,read,atomic}_bw\ -e; do
    # With events and no more messages than receives, perftest may sleep for a completion that it has
    # taken; over our own libraries, too. With more, ib_send_bw sleeps for ever if the peer gives no
    # credit for two thirds of its receives (perftest.sh): those are 350 MB here, not 20.
    case $program in
    'ib_send_bw -e') options=$events ;;
    *-e) options='-n 1000' ;;
    *) options='-n 200' ;;
    esac
    read -ra words <<<"$program -R -F $options -p PORT"
    pair $system $system "$program" "${words[@]}" -- "${words[@]}" 127.0.0.1
done

# Queue pairs that the programs connect themselves. That of rdma-core 65 wants more than ours have.
if command -v ibv_rc_pingpong >/dev/null; then
    pingpong=(ibv_rc_pingpong -g 1 -p PORT)
    pair $system $system pingpong "${pingpong[@]}" -- "${pingpong[@]}" 127.0.0.1
    pair $system $system 'pingpong -e' "${pingpong[@]}" -e -- "${pingpong[@]}" -e 127.0.0.1
    if "$ANYWARP" doctor ibv_rc_pingpong >/dev/null; then
        pair $system '' pingpong "${pingpong[@]}" -- "${pingpong[@]}" 127.0.0.1
        pair '' $system pingpong "${pingpong[@]}" -- "${pingpong[@]}" 127.0.0.1
    fi
fi

# Commands by ioctl(), as a libibverbs that no longer writes would send them.
export ANYWARP_UVERBS_IOCTL=on ANYWARP_UVERBS_TRACE=$dir/trace.ioctl
pair $system $system 'rping by ioctl' "${rping[@]}" -s -- "${rping[@]}" -c
read -ra words <<<"ib_send_bw -R -F $events -p PORT -e"
pair $system $system 'ib_send_bw by ioctl' "${words[@]}" -- "${words[@]}" 127.0.0.1
unset ANYWARP_UVERBS_IOCTL ANYWARP_UVERBS_TRACE
grep -qx 'QUERY_DEVICE 2/0 errno 28' "$dir/trace.ioctl" || failed 'no command by ioctl' trace.ioctl

# Their rsockets, and ours with theirs.
for manner in '-T b -T v' '-T n -T v' '-T v'; do
    read -ra words <<<"rstream $manner -S 4096 -C 50 -p PORT"
    pair $system $system "rstream $manner" "${words[@]}" -- "${words[@]}" -s 127.0.0.1
    for size in 64 1048576; do
        read -ra words <<<"rstream $manner -S $size -C 20 -p PORT"
        pair $system '' "rstream $manner -S $size" "${words[@]}" -- "${words[@]}" -s 127.0.0.1
        pair '' $system "rstream $manner -S $size" "${words[@]}" -- "${words[@]}" -s 127.0.0.1
    done
done
read -ra words <<<"riostream -T v -S 65536 -C 50 -p PORT"
pair $system $system riostream "${words[@]}" -- "${words[@]}" -s 127.0.0.1
pair $system '' riostream "${words[@]}" -- "${words[@]}" -s 127.0.0.1
pair '' $system riostream "${words[@]}" -- "${words[@]}" -s 127.0.0.1

# copy SERVER-OPTION CLIENT-OPTION: the server of rcopy stays.
copy()
{
    port=$(free_port)
    start_server server "$port" ${1:+"$1"} rcopy -p "$port"
    start client ${2:+"$2"} rcopy "$dir/from" "127.0.0.1:$dir/to" -p "$port"
    expect_status "rcopy ${1:-ours} ${2:-ours}" client 60 0 server
    cmp "$dir/from" "$dir/to" || failed "rcopy ${1:-ours} ${2:-ours}: another file" client server
    stop server
}
head -c 3000001 /dev/urandom >"$dir/from"
copy $system $system
copy $system ''
copy '' $system

read -ra words <<<"ib_send_bw -R -F -n 200 -s 4096 -p PORT"
pair $system '' ib_send_bw "${words[@]}" -- "${words[@]}" 127.0.0.1
pair '' $system ib_send_bw "${words[@]}" -- "${words[@]}" 127.0.0.1

# On a RoCE device the distribution's librdmacm moves queue pairs as InfiniBand's CM tells it.
export ANYWARP_DEVICES=anyroce0=roce:
for server in $system ''; do
    for client in $system ''; do
        pair "$server" "$client" 'rping, RoCE' "${rping[@]}" -s -- "${rping[@]}" -c
        pair "$server" "$client" 'ib_send_bw, RoCE' "${words[@]}" -- "${words[@]}" 127.0.0.1
    done
done
unset ANYWARP_DEVICES

finish

# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# The stock programs of the soak: draw_program leaves what is run in these variables.
#
#   server, client   their command lines, arrays; the address of the server is 127.0.0.1
#   stays            whether the server goes on when its client has ended
#
# $port is the server's; $buffers tells how large those of TCP are: with the smallest a megabyte takes
# tenths of a second.

# pick WORD...: one of them.
pick()
{
    shift $((RANDOM % $#))
    printf '%s\n' "$1"
}

# add_one OPTIONS...: one of them, words in a string, to the array options.
add_one()
{
    local words
    read -ra words <<<"$(pick "$@")"
    options+=("${words[@]}")
}

draw_rping()
{
    local size both
    size=$(pick 64 4096 30000 65535)
    both=(-a 127.0.0.1 -p "$port" -V -C "$(pick 5 50 200)" -S "$size")
    server=(rping -s "${both[@]}")
    client=(rping -c "${both[@]}")
}

draw_ucmatose()
{
    local both
    both=(-p "$port" -c "$(pick 1 10 50)" -C "$(pick 0 10 100)" -S "$(pick 1 100 20000)")
    [ $((RANDOM % 3)) != 0 ] || both+=(-m)
    server=(ucmatose "${both[@]}")
    client=(ucmatose -s 127.0.0.1 "${both[@]}")
}

draw_example()
{
    local kind
    kind=$(pick rdma_ rdma_x)
    server=("${kind}server" -p "$port")
    client=("${kind}client" -s 127.0.0.1 -p "$port")
}

draw_cmtime()
{
    cmtime_fits || { draw_ucmatose && return; }
    server=(cmtime -p "$port")
    client=(cmtime -s 127.0.0.1 -p "$port" -c "$(pick 1 20 200)")
    stays=yes
}

# Sends with events sleep for ever in perftest once credits, which are RDMA Writes, come too late;
# see tests/apps/perftest.sh. Several QPs of ib_send_bw need their requests in order.
draw_perftest()
{
    local program options sizes
    program=ib_$(pick send write read atomic)_$(pick bw lat)
    options=(-R -F -p "$port" -n "$(pick 20 200 1000)")
    if [[ $program != ib_atomic_* ]]; then
        sizes=(1 64 4096)
        [ "$buffers" != default ] || sizes+=(65536 1048576)
        options+=(-s "$(pick "${sizes[@]}")")
    fi
    case $program in
    ib_send_bw) add_one '' '' -b '-t 4 -r 8' '--use-srq' ;;
    *_bw) add_one '' '' -b '-q 4' '-q 2 -b' '-t 4' ;;
    # It spins on its memory, beside the thread that brings what comes there.
    ib_write_lat) options+=(-n 50) ;;
    *_lat) add_one '' '' -e ;;
    esac
    server=("$program" "${options[@]}")
    client=("$program" "${options[@]}" 127.0.0.1)
}

draw_qperf()
{
    server=(qperf -lp "$port")
    client=(qperf -lp "$port" -cm1 -t 1 127.0.0.1 "$(pick rc_bi_bw rc_bw rc_lat rc_rdma_read_bw \
        rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat rc_rdma_write_poll_lat \
        rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add)")
    stays=yes
}

draw_fio()
{
    local verb both
    verb=$(pick write read send)
    both=(--ioengine=rdma --port="$port" --bs="$(pick 4k 64k 256k)" --size="$(pick 1m 16m)")
    server=(fio --name=server --rw=read "${both[@]}")
    client=(fio --name=client --rw=write "${both[@]}" --hostname=127.0.0.1 --verb="$verb"
        --iodepth="$(pick 1 4 16)")
}

draw_program()
{
    stays=no
    "draw_$(pick rping rping ucmatose example cmtime perftest perftest perftest perftest qperf \
        fio)"
}

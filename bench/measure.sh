# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# How the programs are run and what they print is read. Each function that measures leaves lines
# "METRIC VALUE UNIT" in $work/result; bench/run calls it through measure().

number='[0-9]+(\.[0-9]+)?(e-[0-9]+)?'

available()
{
    case $1 in
    raw) ;;
    anywarp) command -v ib_write_bw >/dev/null ;;
    tls) [ -x "$build/bench/raw_tls" ] && command -v ib_write_bw >/dev/null ;;
    ucx) ucx_usable && command -v ucx_perftest >/dev/null ;;
    libfabric) ucx_usable && command -v fi_pingpong >/dev/null ;;
    without) [ -n "$without" ] && command -v ib_write_bw >/dev/null ;;
    esac
}

# Theirs cannot be set but by the system's.
ucx_usable()
{
    [ "$congestion" = "$(cat "$knob")" ]
}

head_of_table()
{
    local tool
    awk -F ': ' '/^model name/ { print "machine:    " $2; exit }' /proc/cpuinfo
    echo "cores:      $(nproc), kernel $(uname -sr)"
    echo "network:    loopback, $([ $netns = yes ] && echo private || echo "the system's")"
    echo "congestion: $congestion, of all programs"
    echo "pinned:     $([ $pin = yes ] && echo "client to CPU 0, server to CPU 1" || echo no)"
    echo "rounds:     $rounds$([ $quick = no ] || echo ', quick: the figures mean nothing')"
    for tool in anywarp tls ucx libfabric; do
        available $tool || echo "left out:   $tool: not installed, or of another congestion control"
    done
    echo
}

# measure COMMAND...: fails if it fails or prints anything but results.
measure()
{
    rm -f "$work"/{result,client,server}{,.err}
    "$@" >"$work/result" 2>"$work/result.err" || return
    [ -s "$work/result" ] && ! grep -qvE "^[a-z0-9_]+ $number [A-Za-z/]+\$" "$work/result" &&
        ! grep -qE '^(lat|mean|bw|rate|poll) 0(\.0+)? ' "$work/result"
}

# amount N: how many of something; few if --quick.
amount()
{
    [ $quick = no ] && echo "$1" || echo 20
}

# on SIDE COMMAND...: on the CPU of client or server.
on()
{
    local cpu=0
    [ "$1" = client ] || cpu=1
    shift
    if [ $pin = yes ]; then
        exec timeout -k 1 30 taskset -c $cpu "$@"
    else
        exec timeout -k 1 30 "$@"
    fi
}

# with [NAME=VALUE...] COMMAND...
with()
{
    while [[ $1 == [A-Z]*=* ]]; do
        local -x "${1?}"
        shift
    done
    "$@"
}

# on_other COMMAND...: on the build that is compared with.
on_other()
{
    local anywarp=$without
    "$@"
}

# recorded COMMAND...: both ends with the flight recorder.
recorded()
{
    with ANYWARP_RECORD="$work/record.%p" "$@"
    local status=$?
    rm -f "$work"/record.*
    return $status
}

# in_tls COMMAND...: both ends with the same certificate.
in_tls()
{
    local keys=$work/keys
    [ -e "$keys/bench.key" ] || "$anywarp" keys "$keys" bench >/dev/null || return
    with ANYWARP_TLS=require ANYWARP_TLS_CA="$keys/ca.crt" ANYWARP_TLS_CERT="$keys/bench.crt" \
        ANYWARP_TLS_KEY="$keys/bench.key" "$@"
}

# pair PORT SERVER-WORDS -- CLIENT-WORDS: runs both; what they print is in $work/server and client.
pair()
{
    local port=$1 words=() status
    shift
    while [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    shift
    (on server "${words[@]}") >"$work/server" 2>"$work/server.err" &
    server=$!
    wait_listening "$port" $server && (on client "$@") >"$work/client" 2>"$work/client.err"
    status=$?
    [ $status = 0 ] || kill $server 2>/dev/null
    wait $server 2>/dev/null || status=1
    server=
    return $status
}

# raw PROGRAM OPTION...
raw()
{
    (exec timeout -k 1 30 "$build/bench/$1" "${@:2}")
}

# own PROGRAM OPTION...: a program of bench on anywarp.
own()
{
    (exec timeout -k 1 30 "$anywarp" run "$build/bench/$1" "${@:2}")
}

# perftest PROGRAM SIZE COUNT OPTION...: stock, connected by rdma_cm; with BENCH_CM= by numbers.
perftest()
{
    local port size=$2
    local words=("$anywarp" run "$1" ${BENCH_CM--R} -F -s "$2" -n "$(amount "$3")" "${@:4}")
    [[ $1 != *_bw ]] || words+=(-N --report_gbits)
    port=$(free_port)
    pair "$port" "${words[@]}" -p "$port" -- "${words[@]}" -p "$port" 127.0.0.1 || return
    case $1 in
    *_bw)
        awk -v size="$size" '
            /BW average\[Gb\/sec\] +MsgRate\[Mpps\]/ { head = 1 }
            head && NF == 5 && $1 == size {
                print "bw", $5 * size / 1e3, "GB/s"
                print "rate", $5, "M/s"
            }' "$work/client"
        ;;
    *_lat)
        # perftest tells whole round trips of reads and halves of the others.
        awk -v size="$size" -v half="$([ "$1" = ib_read_lat ] && echo 2 || echo 1)" '
            /t_typical\[usec\] +t_avg\[usec\].*99.9% percentile/ { head = 1 }
            head && NF == 9 && $1 == size {
                print "lat", $5 / half, "us"
                print "mean", $6 / half, "us"
                print "p999", $9 / half, "us"
            }' "$work/client"
        ;;
    esac
}

# rstream METRIC SIZE COUNT: on rsockets; mean of as many round trips, or bw of as many messages.
rstream()
{
    local port size=$2 words
    words=("$anywarp" run rstream -S "$2" -C 1 -I "$(amount "$3")")
    [ "$1" = mean ] || words=("$anywarp" run rstream -S "$2" -C "$(amount "$3")" -I 1)
    port=$(free_port)
    pair "$port" "${words[@]}" -p "$port" -- "${words[@]}" -p "$port" -s 127.0.0.1 || return
    awk -v metric="$1" -v size="$size" '
        /Gb\/sec +usec\/xfer/ { head = 1; next }
        head && NF == 8 && metric == "mean" { print "mean", $8, "us" }
        head && NF == 8 && metric == "bw" { print "bw", size / 1e3 / $8, "GB/s" }' "$work/client"
}

# rings COMMAND...: both ends of one on anywarp leave TCP for memory that they share.
rings()
{
    with ANYWARP_SHM=on "$@"
}

# beside COMMAND...: with a neighbour that streams through memory.
beside()
{
    local neighbour status=0
    "$build/bench/neighbour" &
    neighbour=$!
    "$@" || status=$?
    kill $neighbour 2>/dev/null
    wait $neighbour 2>/dev/null
    return $status
}

# ucx_shm COMMAND...: with the transport of UCX for processes of one host.
ucx_shm()
{
    with BENCH_UCX_TLS=posix "$@"
}

# ucx TEST SIZE COUNT: that of later releases looks for its peer by MPI, unless its input is a terminal.
# shellcheck disable=SC2016
ucx()
{
    local port program=(sh -c '[ ! -r /dev/ptmx ] || exec </dev/ptmx; exec ucx_perftest "$@"' sh)
    local -x UCX_TLS=${BENCH_UCX_TLS:-tcp}
    local -x UCX_NET_DEVICES=$([ "$UCX_TLS" = tcp ] && echo lo || echo all)
    port=$(free_port)
    pair "$port" "${program[@]}" -p "$port" -- \
        "${program[@]}" -p "$port" 127.0.0.1 -f -t "$1" -s "$2" -n "$(amount "$3")" \
        -w "$(amount $(($3 / 10)))" || return
    awk -v size="$2" -v test="$1" '
        /message rate \(msg\/s\)/ { head = 1 }
        head && NF == 8 && $1 + 0 > 0 && test ~ /_lat$/ { print "lat", $2, "us" }
        head && NF == 8 && $1 + 0 > 0 && test ~ /_bw$/ {
            print "bw", $8 * size / 1e9, "GB/s"
            print "rate", $8 / 1e6, "M/s"
        }' "$work/client"
}

# fi_msg SIZE COUNT: libfabric tells the mean only.
fi_msg()
{
    fi_pingpong_on tcp msg "$@"
}

# fi_shm SIZE COUNT: its provider for processes of one host.
fi_shm()
{
    fi_pingpong_on shm rdm "$@"
}

# fi_pingpong_on PROVIDER ENDPOINT SIZE COUNT
fi_pingpong_on()
{
    local port
    port=$(free_port)
    set -- fi_pingpong -p "$1" -e "$2" -S "$3" -I "$(amount "$4")"
    pair "$port" "$@" -B "$port" -- "$@" -P "$port" 127.0.0.1 || return
    awk '/usec\/xfer/ { head = 1; next } head && NF == 8 { print "lat", $7, "us" }' "$work/client"
}

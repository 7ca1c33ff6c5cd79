# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Functions of the tests that run stock programs on anywarp. Programs run in the background under
# a name; what they print is in $dir/NAME and $dir/NAME.err.

set -u
# shellcheck source=tests/setup.sh
. "$SRCDIR/tests/setup.sh"

dir=$(mktemp -d) || exit 99
declare -A pids=()
failures=0
step=0.05

# The AddressSanitizer of gcc 12 mistakes the stack of a cancelled thread for a used signal stack;
# what the programs themselves leak is not ours.
export ASAN_OPTIONS=use_sigaltstack=0:detect_leaks=0

cleanup()
{
    local name
    for name in "${!pids[@]}"; do
        kill -KILL "${pids[$name]}" && wait "${pids[$name]}"
    done 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

# As that of Debian 13 is built: without a terminal before it, ucx_perftest takes itself for a part of a
# run by MPI.
# shellcheck disable=SC2016,SC2034
ucx_perftest=(sh -c '[ ! -r /dev/ptmx ] || exec </dev/ptmx; exec ucx_perftest "$@"' sh)

# need PROGRAM...: skips the test where one is missing.
need()
{
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || skip "$program is not installed"
    done
}

# sanitized: the build has a sanitizer, which wants to be the first library of all and takes crashes for itself.
sanitized()
{
    "$ANYWARP" env | grep -q san.so
}

# rping_since VERSION: rping is of that rdma-core or a later one, as Debian's packages say.
rping_since()
{
    local version
    version=$(dpkg-query -W -f '${Version}' rdmacm-utils 2>/dev/null) && dpkg --compare-versions "$version" ge "$1"
}

# need_tls: skips the test where the libraries have none; else leaves the key "try" in $dir/psk.
need_tls()
{
    "$ANYWARP" keys --psk try "$dir/psk" >"$dir/keys" 2>&1 && return
    ! grep -q 'has no TLS' "$dir/keys" || skip "a build without TLS"
    failed "anywarp keys" keys
}

skip()
{
    echo "SKIP: $*"
    exit 77
}

# failed TEXT [NAME...]: counts a failure and shows the ends of the outputs of NAMEs.
failed()
{
    local name
    printf 'FAILED: %s\n' "$1"
    failures=$((failures + 1))
    shift
    for name in "$@"; do
        tail -v -n 30 "$dir/$name" "$dir/$name.err" 2>/dev/null | cut -c1-300
    done
}

# start NAME COMMAND...
start()
{
    local name=$1
    shift
    : >"$dir/$name"
    "$ANYWARP" run "$@" >"$dir/$name" 2>"$dir/$name.err" &
    pids[$name]=$!
}

# start_server NAME PORT COMMAND...: returns when it listens; the test ends if it never does.
start_server()
{
    local name=$1 port=$2
    shift 2
    start "$name" "$@"
    wait_listening "$port" "${pids[$name]}" && return
    failed "$*: does not listen on port $port" "$name"
    exit 1
}

running()
{
    kill -0 "${pids[$1]}" 2>/dev/null
}

# within SECONDS COMMAND...: repeats the command until it succeeds; fails when the time is over.
within()
{
    local deadline=$((SECONDS + $1 + 1))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || return
        sleep $step
    done
}

gone()
{
    ! running "$1"
}

# ended NAME SECONDS: leaves its exit status in $status, or "none" if it did not end and was killed.
# The undefined behaviour sanitizer reports without ending the program.
ended()
{
    if within "$2" gone "$1"; then
        wait "${pids[$1]}" 2>/dev/null
        status=$?
    else
        kill -KILL "${pids[$1]}"
        wait "${pids[$1]}" 2>/dev/null
        status=none
    fi
    unset "pids[$1]"
    ! grep -qaE 'runtime error:|ERROR: [A-Za-z]*Sanitizer' "$dir/$1.err" ||
        failed "sanitizer report" "$1"
}

# stop NAME: ends a program that would run for ever; it must have lived until now.
stop()
{
    running "$1" || failed "$1 ended by itself" "$1"
    kill "${pids[$1]}" 2>/dev/null
    ended "$1" 10
}

# closed_early NAME: stock rping closes its channel of events before its own thread is back from it, and
# that thread then ends the program, which has done all its work; over the kernel's devices, too.
closed_early()
{
    [ "$status" = 255 ] && grep -qx 'rdma_get_cm_event: Bad file descriptor' "$dir/$1.err"
}

# expect_status WHAT NAME SECONDS STATUS [OTHER...]: shows the outputs of OTHERs as well on failure.
expect_status()
{
    local what=$1 name=$2 seconds=$3 want=$4
    shift 4
    ended "$name" "$seconds"
    [ $status = "$want" ] || { [ "$want" = 0 ] && closed_early "$name"; } ||
        failed "$what: $name: exit status $status, wanted $want" "$name" "$@"
}

# Later releases' server listens to TCP, too, at the number of its RDMA port, which is a TCP port here.
cmtime_fits()
{
    ! cmtime -h 2>&1 | grep -q base_qpn || { echo "no cmtime: this one wants its port twice" && false; }
}

# lines_at_least NAME COUNT
lines_at_least()
{
    [ "$(wc -l <"$dir/$1")" -ge "$2" ]
}

# own_addresses: addresses of this machine that are not loopback or link-local, one of a family.
own_addresses()
{
    ip -o address show up scope global 2>/dev/null |
        awk '!seen[$3]++ { sub("/.*", "", $4); print $4 }'
}

# dated_certificate NAME AUTHORITY FROM UNTIL: in $dir, of the authority there; times as 20260101000000Z.
# "openssl x509" has no date for it, and from OpenSSL 3.4 on no days that have gone by.
dated_certificate()
{
    local files=$dir/dated
    mkdir -p "$files" && : >"$files/index"
    printf '%s\n' '[ca]' 'default_ca = it' '[it]' "database = $files/index" "new_certs_dir = $files" \
        'rand_serial = yes' 'default_md = sha256' 'policy = any' '[any]' 'commonName = supplied' >"$files/conf"
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/$1.key" -out "$dir/csr" \
        -subj "/CN=$1" 2>/dev/null
    openssl ca -batch -notext -config "$files/conf" -in "$dir/csr" -out "$dir/$1.crt" -cert "$dir/$2.crt" \
        -keyfile "$dir/$2.key" -startdate "$3" -enddate "$4" 2>/dev/null || failed "no certificate $1"
}

# finish: the end of a test.
finish()
{
    [ $failures = 0 ]
    exit
}

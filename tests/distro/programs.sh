#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The stock programs of the distribution that this runs in, each against itself over loopback, and
# what of its programs, providers and Python modules finds all names of ours. Prints a line for each:
# "NAME ok", "NAME FAILED", or "NAME -" for what is not installed.
# With a FOLDER, the programs of the release that is there, on the other libraries of this one.
# usage: tests/distro/programs.sh BUILD-TREE [FOLDER], or an unpacked bundle

SRCDIR=$(readlink -f "$(dirname "$0")/../..")
BUILDDIR=$(readlink -f "$1")
ANYWARP=$BUILDDIR/anywarp
libraries=$BUILDDIR/.libs
if [ -d "$BUILDDIR/lib/anywarp" ]; then
    ANYWARP=$BUILDDIR/bin/anywarp
    libraries=$BUILDDIR/lib/anywarp
fi
# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
limit=${PROGRAM_SECONDS:-60} # of each
folder=${2-}

# Programs only: what else is there is for another C library.
files()
{
    dpkg-query ${folder:+--admindir="$folder/var/lib/dpkg"} -L "$@" 2>/dev/null
}
if [ -n "$folder" ]; then
    mkdir "$dir/bin"
    files rdmacm-utils ibverbs-utils perftest | grep ^/usr/bin/. |
        sed "s,^,$folder," | xargs ln -st "$dir/bin"
    PATH=$dir/bin:$PATH
fi

row()
{
    printf '%-22s %s\n' "$1" "$2"
    [ "$2" != FAILED ] || failures=$((failures + 1))
}

# shown NAME: what a program that failed has said.
shown()
{
    tail -v -n 10 "$dir/$1" "$dir/$1.err" 2>/dev/null | cut -c1-200 >&2
}

# alone NAME TEXT COMMAND...: ends well and prints TEXT.
alone()
{
    local name=$1 text=$2 result=ok
    shift 2
    if ! command -v "$1" >/dev/null; then
        row "$name" -
        return
    fi
    timeout "$limit" "$ANYWARP" run "$@" >"$dir/$name" 2>"$dir/$name.err" && grep -q "$text" "$dir/$name" ||
        result=FAILED
    row "$name" $result
    [ $result = ok ] || shown "$name"
}

# pair NAME SERVER CLIENT: two commands, in which PORT is replaced; both end well.
pair()
{
    local name=$1 port result=ok
    if ! command -v "${2%% *}" >/dev/null; then
        row "$name" -
        return
    fi
    port=$(free_port)
    # shellcheck disable=SC2086 # words
    start server timeout "$limit" ${2//PORT/$port}
    wait_listening "$port" "${pids[server]}" || result=FAILED
    # shellcheck disable=SC2086
    timeout "$limit" "$ANYWARP" run ${3//PORT/$port} >"$dir/client" 2>"$dir/client.err" || result=FAILED
    [ $result = ok ] || kill "${pids[server]}" 2>/dev/null
    wait "${pids[server]}" || result=FAILED
    unset 'pids[server]'
    row "$name" $result
    [ $result = ok ] || { shown server && shown client; }
}

# All that this distribution has to link with the two libraries.
names()
{
    local file missing result=ok count=0
    while read -r file; do
        file=$folder$file
        [ -f "$file" ] && readelf -d "$file" 2>/dev/null | grep -q 'NEEDED.*lib\(ibverbs\|rdmacm\)\.' ||
            continue
        count=$((count + 1))
        LD_LIBRARY_PATH=$libraries ldd -r "$file" >"$dir/ldd" 2>&1
        missing=$(grep -E '(undefined symbol|not found|not defined).*(ibv_|rdma_|verbs_|IBVERBS|RDMACM)' \
            "$dir/ldd")
        grep -qF "$libraries/libibverbs.so.1" "$dir/ldd" || missing='does not load ours'
        [ -z "$missing" ] && continue
        result=FAILED
        printf '%s\n%s\n' "$file" "$missing" >&2
    done < <(files rdmacm-utils ibverbs-utils perftest ibverbs-providers python3-pyverbs)
    [ $count -ge 40 ] || result=FAILED
    row "names" $result
    echo "names: $count files" >&2
}

names
alone ibv_devices anywarp0 ibv_devices
alone ibv_devinfo anywarp0 ibv_devinfo -v
pair rping 'rping -s -a 127.0.0.1 -p PORT -V -C 50' 'rping -c -a 127.0.0.1 -p PORT -V -C 50'
pair ucmatose 'ucmatose -b 127.0.0.1 -p PORT' 'ucmatose -s 127.0.0.1 -p PORT'
pair rdma_server 'rdma_server -p PORT' 'rdma_client -s 127.0.0.1 -p PORT'
for operation in send write read atomic; do
    for what in bw lat; do
        program=ib_${operation}_$what
        pair $program "$program -R -F -n 500 -p PORT" "$program -R -F -n 500 -p PORT 127.0.0.1"
    done
done
[ $failures = 0 ]

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Sources of the kernel as programs: the headers by themselves, what main() does for a module, and
# kping with itself and with rping of rdma-core, in both roles.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
include=$SRCDIR/include/kverbs
kping=$BUILDDIR/examples/.libs/kping
[ -x "$kping" ] || kping=$BUILDDIR/examples/kping
no_leaks=use_sigaltstack=0:detect_leaks=1

# As the kernel was compiled then. Each header brings what it needs.
for header in $(cd "$include" && find . -name '*.h' | sed 's,^\./,,'); do
    echo "#include <$header>" | ${CC:-cc} -std=gnu89 -Wall -Wextra -Werror -I"$include" \
        -fsyntax-only -x c - 2>"$dir/header.err" || failed "<$header> by itself" header
done
for other in '-I%/include/kverbs rdma/ib_verbs.h rdma/verbs.h' \
    '-I%/include/kverbs rdma/rdma_cm.h rdma/rdma_cma.h'; do
    read -r flag ours theirs <<<"${other//%/$SRCDIR}"
    printf '#include "%s"\n#include <%s>\n' "$SRCDIR/include/$theirs" "$ours" |
        ${CC:-cc} -D_GNU_SOURCE "$flag" -I"$SRCDIR/include" -fsyntax-only -x c - 2>"$dir/both.err" &&
        failed "<$ours> with <$theirs>"
    grep -q '#error' "$dir/both.err" || failed "<$ours> with <$theirs>: no #error" both
done

module=$dir/kverbs_module
${CC:-cc} -std=gnu89 -Wall -Werror -I"$include" -o "$module" "$SRCDIR/tests/apps/kverbs_module.c" \
    -L"$BUILDDIR/.libs" -lkverbs -Wl,--allow-shlib-undefined 2>"$dir/cc.err" ||
    { failed 'the module does not compile' cc && finish; }

# runs STATUS WORD...: the module, with these arguments
runs()
{
    local want=$1
    shift
    start module "$module" "$@"
    expect_status "module $*" module 20 "$want"
}

# says TEXT: one of the module's lines is that.
says()
{
    cat "$dir/module" "$dir/module.err" | grep -qxF -- "$1" || failed "no line \"$1\"" module
}

runs 0 mode=values
says '-1 1 -2 2 3 -4 4 five 0 6'
says end
runs 0 mode=values an_int=-10 a_uint=0x10 a_short=-20 a_ushort=20 a_byte=30 a_long=-40 a_ulong=40 \
    a_charp=fifty a_bool=Y outside=60
says '-10 16 -20 20 30 -40 40 fifty 1 60'
for value in 1 y on n 0 N off; do
    runs 0 mode=values a_bool=$value
    case $value in 1 | y | on) says '-1 1 -2 2 3 -4 4 five 1 6' ;; *) says '-1 1 -2 2 3 -4 4 five 0 6' ;; esac
done
for wrong in an_int=4x an_int= an_int=99999999999 a_uint=-1 a_uint=99999999999 a_short=40000 \
    a_ushort=70000 a_byte=256 a_long=99999999999999999999 a_ulong=-1 a_bool=maybe a_bool=o \
    a_bool= inside=7 -h nothing /elsewhere/file; do
    runs 2 "$wrong"
    grep -q 'known by another name' "$dir/module.err" || failed "$wrong: no usage" module
done

runs 1 'mode=init fails'
says "$module: No such device"
runs 1 mode=fails
says end
runs 3 mode=leaves
says 'protection domains left: 1'
runs 134 mode=bug 2>/dev/null
grep -q 'kernel BUG at' "$dir/module.err" || failed 'no BUG' module

runs 0 '/proc/file=first text' /proc/file '/proc/file=another' /proc/file
says 'first text'
says 'another'
[ "$(grep -c '^line$' "$dir/module")" = 2000 ] || failed 'not all of the file was read' module
runs 1 /proc/none
says '/proc/none: No such file or directory'
runs 1 /proc/folder
runs 1 /proc/folder/file
runs 1 /proc/no_ops
runs 1 /proc/no_ops=text
says '/proc/no_ops: Invalid argument'
runs 1 "/proc/file=$(printf '%099d' 0)"

# SIGTERM ends what waits: a thread that allows it, and what a file's writer waits for.
start module "$module" mode=sleeps
within 20 grep -q sleeps "$dir/module.err" || failed 'no thread' module
kill -TERM "${pids[module]}"
expect_status 'a thread with SIGTERM' module 20 0
says 'signal: 1'
says end
start module "$module" /proc/file=wait /proc/file=never
sleep 0.3
kill -INT "${pids[module]}"
expect_status 'a writer with SIGINT' module 20 1
says end

# pings SERVER-COMMAND CLIENT-COMMAND: % is the port
port=27460
pings()
{
    local what="$1, $2"
    port=$((port + 1))
    # The commands are lists of words.
    # shellcheck disable=SC2086
    start_server server $port ${1//%/$port}
    # shellcheck disable=SC2086
    start client ${2//%/$port}
    expect_status "$what" client 60 0 server
    expect_status "$what" server 20 0 client
    [ "$(cat "$dir/client" "$dir/client.err" | grep -c 'ping data: *rdma-ping-')" = 7 ] ||
        failed "$what: not 7 pings" client server
}

export ASAN_OPTIONS=$no_leaks
for size in 16 64 4095 65536; do
    pings "$kping server=1 port=% size=$size verbose=1" "$kping port=% size=$size count=7 verbose=1"
done
start client "$kping" port=1
expect_status 'kping without a server' client 20 1
start client "$kping" size=15
expect_status 'kping size=15' client 20 1
ASAN_OPTIONS=use_sigaltstack=0:detect_leaks=0
start_server server 27490 "$kping" server=1 port=27490
kill -TERM "${pids[server]}"
expect_status 'a server that waits' server 20 1

if command -v rping >/dev/null; then
    for size in 64 1000 65535; do
        pings "$kping server=1 port=% size=$size" "rping -c -a 127.0.0.1 -p % -S $size -C 7 -v -V"
        pings "rping -s -a 127.0.0.1 -p % -C 7 -S $size -V" "$kping port=% size=$size count=7 verbose=1"
    done
fi
finish

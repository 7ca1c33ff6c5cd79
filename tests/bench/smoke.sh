#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The benchmark runs, and its table, CSV and plots hold all that was asked for. No figure is judged.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need awk ib_write_bw

bench()
{
    "$SRCDIR/bench/run" --build "$BUILDDIR" --quick --rounds 1 "$@"
}

# With all programs there, each row of the table names cases that exist.
bench --list >"$dir/all" || failed "--list"
names=raw,anywarp
! grep -q '^tls ' "$dir/all" || names+=,tls
! grep -q '^ucx ' "$dir/all" || names+=,ucx
! grep -q '^libfabric ' "$dir/all" || names+=,libfabric
while IFS='|' read -r text subject base _; do
    for key in $subject $base; do
        IFS=/ read -r who case size _ <<<"$key"
        [[ ,$names, == *",$who,"* ]] || continue
        grep -q "^$who $case $size " "$dir/all" || failed "the row of ${text}has no case: $key"
    done
done <"$SRCDIR/bench/rows"

# One of each way to measure; a perftest of bandwidth takes more than a second.
only='raw/|/send_lat/64|/read_lat|/write_bw_crc/|tag_lat/64$|tag_bw/64$|msg_lat/64$'
only+='|/(connect|raw_connect|empty_poll|empty_poll_threads|pingpong|pingpong_beside_bulk|idle)/'
only+='|/(write_threads|read_sleeping|read_sleeping_e_spin0)/'
bench --list --only "$only" >"$dir/cases" || failed "--list --only"
bench --only "$only" --csv "$dir/csv" --plots "$dir/plots" >"$dir/table" 2>"$dir/table.err" ||
    failed "bench/run: exit status $?" table

grep -qx 'round,who,case,size,metric,value,unit' "$dir/csv" || failed "no heading" csv
while read -r who case size _; do
    grep -qE "^1,$who,$case,$size,[a-z0-9_]+,[0-9.e-]+,[A-Za-z/]+\$" "$dir/csv" ||
        failed "nothing of $who $case $size" csv
done <"$dir/cases"

rows=$(grep -cE '^\| .* \| (ratio|value) [<>]=? [0-9.]+ +\| (met|missed) ' "$dir/table")
[ "$rows" -ge 10 ] || failed "$rows rows with a target" table
! grep -q failed "$dir/table" || failed "failed rows" table
if command -v gnuplot >/dev/null; then
    for name in latency bandwidth; do
        grep -q '</svg>' "$dir/plots/$name.svg" || failed "no plot of $name" table
    done
else
    grep -q '^no plots' "$dir/table.err" || failed "silent about plots" table
fi

# What cannot run fails, and says what.
if bench --only 'raw/connect' --anywarp /nowhere >"$dir/wrong" 2>"$dir/wrong.err"; then
    failed "no launcher is no error" wrong
fi
finish

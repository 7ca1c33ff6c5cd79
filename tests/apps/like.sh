#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# anywarp run --like: stock programs on the limits of adapters.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong ib_atomic_lat mckey

"$ANYWARP" run --like list >"$dir/list" || failed "--like list" list
mapfile -t adapters < <(sed -n 's/^\([a-z][^:]*\):.*/\1/p' "$dir/list")
[ "${adapters[*]}" = "cxgb4 efa i40iw irdma irdma-roce mlx5-cx5 mlx5-cx6 qedr qedr-iwarp rxe siw" ] ||
    failed "adapters: ${adapters[*]}"
# A limit without a source is none.
! grep -E '^ ' "$dir/list" | grep -vqE '^    [A-Za-z_ ]+ +([0-9]+|none)  [^ ]' ||
    failed "lines without a source" list

"$ANYWARP" run --like no-such true 2>"$dir/none"
[ $? = 2 ] && grep -q 'no-such: no such adapter' "$dir/none" || failed "an unknown adapter" none

for adapter in "${adapters[@]}"; do
    # What the list says is what programs are told.
    "$ANYWARP" run --like "$adapter" ibv_devinfo -v >"$dir/info" 2>&1 ||
        failed "$adapter: ibv_devinfo" info
    grep -qE '^hca_id:[[:space:]]anywarp0' "$dir/info" || failed "$adapter: another name" info
    told=$(awk '$1 == "max_sge_rd:" { print $2 }' "$dir/info")
    has=$(awk -v a="$adapter:" '$1 ~ /:$/ { here = $1 == a } here && $1 == "max_sge_rd" { print $2 }' \
        "$dir/list")
    [ "${has:-16}" -le 16 ] || has=16
    [ "$told" = "${has:-16}" ] || failed "$adapter: max_sge_rd $told, the list has $has" info

    [ "$adapter" != efa ] || continue
    # rping asks for nothing that any other would refuse.
    port=$(free_port)
    start_server server "$port" --like "$adapter" rping -s -a 127.0.0.1 -p "$port" -C 10 -V
    start client --like "$adapter" rping -c -a 127.0.0.1 -p "$port" -C 10 -V
    expect_status "like $adapter" client 60 0 server
    expect_status "like $adapter" server 30 0 client
    ! grep -q refused "$dir/server.err" "$dir/client.err" ||
        failed "$adapter refuses rping" server client
done

# Atomics: an adapter that has them, and one that has not.
atomics()
{
    port=$(free_port)
    start_server server "$port" --like "$1" ib_atomic_lat -R -n 5 -p "$port"
    start client --like "$1" ib_atomic_lat -R -n 5 -p "$port" 127.0.0.1
}
atomics rxe
expect_status 'atomics like rxe' client 60 0 server
expect_status 'atomics like rxe' server 60 0 client
atomics siw
ended client 60
case $status in
none | 0) failed "atomics like siw: exit status $status" client ;;
esac
grep -q 'refused as siw would: atomics, it has none (sw/siw/siw_verbs.c)' "$dir/client.err" ||
    failed "the log does not say why" client
ended server 60

# An adapter that has datagrams, and no connections.
"$ANYWARP" run --like efa ibv_devinfo -v >"$dir/info" 2>&1
for nothing in max_mw max_srq max_mcast_grp max_qp_rd_atom; do
    grep -qE "^[[:space:]]*$nothing:[[:space:]]*0$" "$dir/info" || failed "efa has $nothing" info
done
port=$(free_port)
start_server server "$port" --like efa ibv_ud_pingpong -g 1 -s 512 -n 100 -p "$port"
start client --like efa ibv_ud_pingpong -g 1 -s 512 -n 100 -p "$port" 127.0.0.1
expect_status 'datagrams like efa' client 60 0 server
expect_status 'datagrams like efa' server 60 0 client
! timeout 30 "$ANYWARP" run --like efa ibv_rc_pingpong -g 1 >"$dir/rc" 2>"$dir/rc.err" ||
    failed "a connected QP like efa" rc
grep -q 'refused as efa would: connected QPs, it has none (hw/efa/efa_verbs.c)' "$dir/rc.err" ||
    failed "the log does not say why" rc
timeout 30 "$ANYWARP" run --like efa mckey -b 127.0.0.1 -m 239.1.1.1 >"$dir/group" 2>"$dir/group.err"
grep -q 'refused as efa would: max_mcast_grp' "$dir/group.err" &&
    grep -q 'MULTICAST_ERROR, error: -95' "$dir/group" || failed "a multicast group like efa" group

finish

#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The flight recorder: stock rping that is aborted, killed, stopped in the middle, or ends; what anywarp
# record then tells, as text and, where tshark is, as a capture.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/interop/capture.sh
. "$SRCDIR/tests/interop/capture.sh"
need rping

# text RECORD: in $dir/text.
text()
{
    "$ANYWARP" record "$1" >"$dir/text" 2>"$dir/text.err" || failed "record $1: status $?" text
}

# says PATTERN...: lines that match, in this order.
says()
{
    local pattern from=1 at
    for pattern in "$@"; do
        at=$(tail -n +$from "$dir/text" | grep -nE -m1 -- "$pattern" | cut -d: -f1)
        [ -n "$at" ] || { failed "does not say, from line $from on: $pattern" text && return; }
        from=$((from + at))
    done
}

# ping COUNT: a server and a client that record, with messages of 100 bytes.
ping()
{
    port=$(free_port)
    rm -f "$dir"/record.*
    start_server server "$port" -e ANYWARP_RECORD="$dir/record.%p" rping -s -a 127.0.0.1 -p "$port" -S 100 -C "$1"
    start client --record "$dir/record.%p" rping -c -a 127.0.0.1 -p "$port" -S 100 -C "$1"
    of_server=$dir/record.${pids[server]}
    of_client=$dir/record.${pids[client]}
}

under_way()
{
    "$ANYWARP" record "${pids[client]}" 2>/dev/null | grep -q '^events of the verbs: .*; frames: [0-9]*, the last 1024'
}

# It ends as it should: everything from the first call to the last.
ping 5
expect_status "recorded rping" client 60 0 server
expect_status "recorded rping" server 60 0 client
[ "$(stat -c %a "$of_client")" = 600 ] || failed "others may read it"
text "$of_client"
says '^process [0-9]+, rping, on anywarp ' '^it ended by exit\(\)$' 'ibv_open_device context 0x' 'rdma_create_event_channel 0x' \
    'rdma_resolve_addr 0x' 'raised RDMA_CM_EVENT_ADDR_RESOLVED' 'got RDMA_CM_EVENT_ADDR_RESOLVED id 0x[0-9a-f]+ status 0$' \
    'ibv_alloc_pd PD 0x' 'ibv_create_cq CQ 0x' 'ibv_create_qp QP 0x.* type RC ' \
    'ibv_reg_mr key 0x.* length 100 access 0x' 'ibv_post_recv QP 0x' 'rdma_connect 0x' \
    'out 127.0.0.1:[0-9]+ > 127.0.0.1:'"$port"' MPA Req,' 'in 127.0.0.1:'"$port"' > .* MPA Rep,' \
    'connected QP 0x[0-9a-f]+ 127.0.0.1:[0-9]+ with 127.0.0.1:'"$port"'$' 'state QP 0x.* to RTS$' \
    'ibv_post_send QP 0x[0-9a-f]+ SEND wr_id' 'out .* QP 0x[0-9a-f]+ Send MSN 1 MO 0 length 16 last$' \
    'in .* RDMA Read Request MSN 1 MO 0 size 100 source STag' 'out .* RDMA Read Response STag 0x.* length 100 last$' \
    'ibv_poll_cq CQ 0x.* SUCCESS RECV byte_len 16' 'rdma_disconnect 0x' 'out .* FIN$' 'rdma_destroy_id 0x'
text "$of_server"
says 'got RDMA_CM_EVENT_CONNECT_REQUEST' 'rdma_accept' 'ibv_post_send QP 0x[0-9a-f]+ RDMA_READ wr_id .* rkey 0x' \
    'ibv_post_send QP 0x[0-9a-f]+ RDMA_WRITE wr_id .* rkey 0x' 'out .* RDMA Write STag 0x.* length 100 last$'

# decoded RECORD: its capture has every kind of FPDU that rping sends, and nothing amiss but what is missing.
decoded()
{
    local opcodes
    command -v tshark >/dev/null || return
    capture=$dir/frames.pcapng
    "$ANYWARP" record --pcap "$capture" "$1" || failed "record --pcap: status $?"
    expect_none '_ws.malformed || iwarp_mpa.bad_length || tcp.checksum.status == 0 || ip.checksum.status == 0'
    opcodes=$(decode -Y iwarp_rdma.opcode -T fields -e iwarp_rdma.opcode | tr ',' '\n' | sort -u | xargs)
    [ "$opcodes" = '0x00 0x01 0x02 0x03' ] || failed "the capture of $1 has opcodes $opcodes"
    expect_none 'tcp.len > 0 && !iwarp_mpa'
}
decoded "$of_client"
[ -z "$(decode -Y tcp.analysis.flags 2>/dev/null)" ] || failed "a whole record makes a capture with holes"

# It does not end as it should. A sanitizer takes some signals for itself.
for signal in ABRT KILL; do
    ping 1000000
    within 20 under_way || failed "$signal: no pings" client server
    kill -$signal "${pids[client]}"
    ended client 10
    [ "$status" = $((128 + $(kill -l $signal))) ] || sanitized || failed "$signal: status $status" client
    text "$of_client"
    says '^it did not end by exit' '^events of the verbs: [0-9]+, the last 1024; .*; frames: [0-9]+, the last 1024' \
        'got RDMA_CM_EVENT_ESTABLISHED' 'ibv_poll_cq CQ 0x.* SUCCESS'
    [ "$(grep -cE '^[0-9:.]+ +[0-9]+  ibv_' "$dir/text")" -gt 900 ] || failed "$signal: few calls" text
    [ "$(grep -cE '^[0-9:.]+ +[0-9]+  (in|out) ' "$dir/text")" -gt 1000 ] || failed "$signal: few frames" text
    decoded "$of_client"
    kill "${pids[server]}" 2>/dev/null
    ended server 10
done 2>/dev/null

# It hangs: its peer stands still, and it says where it waits.
ping 1000000
within 20 under_way || failed "no pings" client server
kill -STOP "${pids[server]}"
waits()
{
    "$ANYWARP" record "${pids[client]}" >"$dir/text" 2>"$dir/text.err" &&
        tail -n 3 "$dir/text" | grep -q 'ibv_get_cq_event .* has not returned$'
}
within 20 waits || failed "it does not tell where it waits" text
events=('rdma_get_cm_event 0x[0-9a-f]+ ... has not returned')
! rping_since 65 || events=() # for which it waits by poll()
says '^it runs$' "${events[@]}"
decoded "${pids[client]}"
kill -KILL "${pids[server]}" "${pids[client]}"
ended server 10
ended client 10

# check and chaos have it, too.
for tool in check chaos; do
    rm -f "$dir/other"
    options=()
    [ $tool = check ] || options=(--seed 1 --only late)
    "$ANYWARP" $tool "${options[@]}" --record "$dir/other" ibv_devinfo >"$dir/tool" 2>&1
    text "$dir/other"
    says 'ibv_open_device context 0x' 'ibv_close_device context 0x'
done

# refused STATUS PATTERN ARGUMENT...
refused()
{
    local want=$1 pattern=$2
    shift 2
    "$ANYWARP" record "$@" >"$dir/text" 2>"$dir/text.err" </dev/null
    status=$?
    [ $status = "$want" ] && grep -qE -- "$pattern" "$dir/text.err" ||
        failed "record $*: status $status, wanted $want, /$pattern/" text
}
refused 1 "record: $0: is no record of the flight recorder" "$0"
refused 1 'is no regular file' "$dir"
refused 1 'No such file' "$dir/none"
refused 1 'no process 1 that records' 1
refused 1 "no process $$ that records" $$
refused 2 'one file or process'
refused 2 'one file or process' a b
refused 2 'unrecognized option' --none "$of_client"
refused 1 '/nowhere/at/all: No such file' --pcap /nowhere/at/all "$of_client"
truncate -s -1 "$dir/other"
refused 1 'is damaged: it has [0-9]+ bytes' "$dir/other"

finish

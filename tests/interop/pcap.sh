#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What ANYWARP_PCAP writes, as Wireshark sees it: of stock programs, of every opcode, with both ends
# in one process, with several threads, with markers of a foreign peer, when a peer resets while
# nothing is read, and when it is full.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/interop/capture.sh
. "$SRCDIR/tests/interop/capture.sh"
need rping ibv_rc_pingpong tshark python3

export ANYWARP_CRC=on

# expect_none_bad: nothing that Wireshark finds fault with, the checksums and numbers of TCP included.
expect_none_bad()
{
    decode -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -Y '_ws.malformed || tcp.analysis.flags ||
        tcp.checksum.status == 0 || ip.checksum.status == 0 || iwarp_mpa.bad_length' >"$dir/frames"
    [ ! -s "$dir/frames" ] || failed "$capture: bad frames" frames
}

# opcodes: how many FPDUs of each there are.
opcodes()
{
    decode -Y iwarp_rdma.opcode -T fields -e iwarp_rdma.opcode | tr ',' '\n' | sort | uniq -c
}

# Stock rping: Send, Write, Read, over both versions of IP; both ends have seen the same.
pings=20
for address in 127.0.0.1 ::1; do
    port=$(free_port)
    rm -f "$dir"/rping-*
    export ANYWARP_PCAP=$dir/rping-%p.pcapng
    start_server server "$port" rping -s -a $address -p "$port" -C $pings -S 65000
    server=${pids[server]}
    start client rping -c -a $address -p "$port" -C $pings -S 65000
    client=${pids[client]}
    expect_status "captured rping" client 60 0 server
    expect_status "captured rping" server 60 0 client
    for capture in "$dir/rping-$server.pcapng" "$dir/rping-$client.pcapng"; do
        [ "$(stat -c %a "$capture")" = 600 ] || failed "$capture: others may read it"
        expect_none_bad
        opcodes >"$dir/opcodes"
        [ "$(awk '{ print $2 ":" $1 }' "$dir/opcodes" | xargs)" = \
            "0x00:$((2 * pings + 1)) 0x01:$pings 0x02:$((2 * pings)) 0x03:$((4 * pings))" ] ||
            failed "$capture: other FPDUs than rping's" opcodes
    done
    expect_decoded
    # Who ends at once after its own FIN has not seen the other's.
    [ -n "$(decode -Y 'tcp.flags.fin == 1')" ] || failed "no FIN"
done

# By number: hellos, also to the port that vouches for them, and acknowledgements, which are Writes.
port=$(free_port)
export ANYWARP_PCAP=$dir/number-%p.pcapng
start_server server "$port" ibv_rc_pingpong -g 1 -n $pings -p "$port"
server=${pids[server]}
start client ibv_rc_pingpong -g 1 -n $pings -p "$port" 127.0.0.1
client=${pids[client]}
expect_status "captured ibv_rc_pingpong" client 60 0 server
expect_status "captured ibv_rc_pingpong" server 60 0 client
for capture in "$dir/number-$server.pcapng" "$dir/number-$client.pcapng"; do
    expect_none_bad
    opcodes >"$dir/opcodes"
    [ "$(awk '$2 == "0x03" { print $1 }' "$dir/opcodes")" = $((2 * pings)) ] ||
        failed "$capture: not $((2 * pings)) Sends" opcodes
    grep -q 0x00 "$dir/opcodes" || failed "$capture: no acknowledgements" opcodes
    decode -Y 'iwarp_mpa.req || iwarp_mpa.rep' -T fields -e tcp.payload >"$dir/frames"
    [ "$(grep -c 415751504e "$dir/frames")" = 4 ] ||
        failed "$capture: not four hellos" frames
done
expect_decoded

# Both ends in one process: each packet once. Wireshark 4.0 does not name opcodes 8, 9 and F.
for test in wr_test threads_test; do
    capture=$dir/$test.pcapng
    ANYWARP_PCAP=$capture timeout 120 "$BUILDDIR/tests/api/$test" >"$dir/$test" 2>&1 ||
        failed "$test: status $?" $test
    expect_none '_ws.malformed || iwarp_mpa.bad_length || tcp.analysis.retransmission ||
        tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment'
    decode -V >"$dir/text"
    ! grep -q 'CRC check: .*Bad' "$dir/text" || failed "$test: bad CRCs" $test
    grep -q 'CRC check: .*Good' "$dir/text" || failed "$test: no CRCs" $test
done
capture=$dir/wr_test.pcapng
opcodes >"$dir/opcodes"
for opcode in 0 1 2 3 4 5 6 8 9 a b f; do
    grep -qE " 0x0$opcode\$" "$dir/opcodes" || failed "no opcode $opcode" opcodes
done

# Peers that hang up or die while the socket is not read, as no receive is posted.
capture=$dir/stalled_test.pcapng
ANYWARP_PCAP=$capture timeout 120 "$BUILDDIR/tests/hostile/stalled_test" >"$dir/stalled_test" 2>&1 ||
    failed "stalled_test: status $?" stalled_test
[ -n "$(decode -Y 'tcp.flags.reset == 1')" ] || failed "no RST"

# A file that is full has whole packets, and the program goes on.
port=$(free_port)
export ANYWARP_PCAP=$dir/full-%p.pcapng ANYWARP_PCAP_MB=1 VERBS_LOG_LEVEL=2
start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -C 40 -S 65000
ANYWARP_PCAP='' start client rping -c -a 127.0.0.1 -p "$port" -C 40 -S 65000
expect_status "rping with a full capture" client 60 0 server
expect_status "rping with a full capture" server 60 0 client
capture=$(echo "$dir"/full-*.pcapng)
size=$(stat -c %s "$capture")
[ "$size" -le $((1024 * 1024)) ] && [ "$size" -gt $((900 * 1024)) ] || failed "$size bytes in 1 MB"
[ "$(grep -c 'full-.*: no more is captured' "$dir/server.err")" = 1 ] || failed "not told once" server
tshark -r "$capture" >"$dir/frames" 2>"$dir/frames.err" || failed "a full capture is cut" frames
unset ANYWARP_PCAP_MB VERBS_LOG_LEVEL

# No place for it, or another process there: told once, at any level of the log, and the program runs.
for place in /proc/nowhere/x "$dir" /dev/full; do
    port=$(free_port)
    export ANYWARP_PCAP=$place
    start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -C 2
    ANYWARP_PCAP='' start client rping -c -a 127.0.0.1 -p "$port" -C 2
    expect_status "capture in $place" client 30 0 server
    expect_status "capture in $place" server 30 0 client
    [ "$(grep -c 'no more is captured' "$dir/server.err")" = 1 ] || failed "$place: not told once" server
done
port=$(free_port)
export ANYWARP_PCAP=$dir/same.pcapng
start_server server "$port" rping -s -a 127.0.0.1 -p "$port" -C 5
start client rping -c -a 127.0.0.1 -p "$port" -C 5
expect_status "one capture for two" client 30 0 server
expect_status "one capture for two" server 30 0 client
cat "$dir/server.err" "$dir/client.err" >"$dir/both"
[ "$(grep -c 'another process writes it' "$dir/both")" = 1 ] || failed "one file for two" both
capture=$dir/same.pcapng
expect_none_bad

finish

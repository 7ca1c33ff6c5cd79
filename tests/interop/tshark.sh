#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A session as Wireshark sees it: every byte belongs to a frame it knows, every CRC is good.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need rping tshark
[ "$(id -u)" = 0 ] || skip "capturing needs root"

pings=20
port=$(free_port)
capture=$dir/capture.pcapng
tshark -q -i lo -f "tcp port $port" -w "$capture" >"$dir/tshark" 2>&1 &
pids[tshark]=$!
within 20 grep -qs 'File:' "$dir/tshark" ||
    skip "tshark cannot capture here: $(tail -n 1 "$dir/tshark")"

export ANYWARP_CRC=on
options=(-a 127.0.0.1 -p "$port" -C "$pings" -S 1000)
start_server server "$port" rping -s "${options[@]}"
start client rping -c "${options[@]}"
expect_status "captured rping" client 60 0 server
expect_status "captured rping" server 30 0

# decode ARGUMENT...: without two heuristics that claim short Sends as theirs.
decode()
{
    tshark -r "$capture" --disable-protocol rpcordma --disable-protocol smb_direct "$@" 2>/dev/null
}

both_closed()
{
    [ "$(decode -Y 'tcp.flags.fin == 1 || tcp.flags.reset == 1' | wc -l)" -ge 2 ]
}
within 20 both_closed || failed "the end of the session is not in the capture" tshark
kill -INT "${pids[tshark]}"
ended tshark 10

# expect_none FILTER: no such frame.
expect_none()
{
    decode -Y "$1" >"$dir/frames"
    [ ! -s "$dir/frames" ] || failed "frames with $1" frames
}
# A busy machine makes TCP repeat a segment; Wireshark decodes the first copy only.
data='tcp.len > 0 && !tcp.analysis.retransmission && !tcp.analysis.spurious_retransmission'
expect_none "$data && !iwarp_mpa"
expect_none '_ws.malformed'
expect_none 'iwarp_mpa.bad_length'
expect_none 'iwarp_rdma.terminate'

# What Wireshark found in the streams accounts for every byte of them.
decode -Y "$data" -T fields -e tcp.len -e iwarp_mpa.pdlength -e iwarp_mpa.ulpdulength \
    >"$dir/lengths"
awk -F '\t' '
    { bytes += $1 }
    $2 != "" { found += 20 + $2 }
    {
        for (i = split($3, length_of, ","); i > 0; i--)
            found += int((2 + length_of[i] + 3) / 4) * 4 + 4
    }
    END { print bytes, "bytes,", found, "in frames"; exit bytes == 0 || bytes != found }
' "$dir/lengths" >"$dir/sum" || failed "not every byte is decoded" sum lengths

decode -V >"$dir/text"
fpdus=$(awk -F '\t' '{ sum += split($3, all, ",") } END { print sum + 0 }' "$dir/lengths")
good=$(grep -c 'CRC check: .*(Good CRC32)' "$dir/text")
[ "$good" = "$fpdus" ] || failed "$good good CRCs in $fpdus FPDUs" tshark

# Each ping is an advertisement, a Read, a go-ahead, an advertisement, a Write and a go-ahead.
opcodes=$(decode -Y iwarp_rdma.opcode -T fields -e iwarp_rdma.opcode | tr ',' '\n')

# expect_opcode COUNT OPCODE NAME
expect_opcode()
{
    local count
    count=$(grep -cixE "0x0*$2" <<<"$opcodes")
    [ "$count" -ge "$1" ] || failed "$count times $3 in $pings pings" tshark
}
expect_opcode $pings 0 'RDMA Write'
expect_opcode $pings 1 'Read Request'
expect_opcode $pings 2 'Read Response'
expect_opcode $((4 * pings)) 3 'Send'

finish

# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A capture as Wireshark sees it; for scripts that have read tests/apps/lib.sh.
# shellcheck disable=SC2154

# start_capture FILE INTERFACE FILTER: as the program "tshark"; fails if it cannot capture.
start_capture()
{
    capture=$1
    tshark -q -B 32 -i "$2" -f "$3" -w "$1" >"$dir/tshark" 2>"$dir/tshark.err" &
    pids[tshark]=$!
    within 20 grep -qs 'File:' "$dir/tshark.err"
}

# decode ARGUMENT...: in two passes, as a frame tells where it is reassembled; without two
# heuristics that claim short Sends as theirs; by what is in a stream rather than by its port, which
# may be one that Wireshark knows.
decode()
{
    tshark -2 -r "$capture" -o tcp.try_heuristic_first:TRUE --disable-protocol rpcordma --disable-protocol smb_direct \
        "$@" 2>/dev/null
}

both_closed()
{
    [ "$(decode -Y 'tcp.flags.fin == 1 || tcp.flags.reset == 1' | wc -l)" -ge 2 ]
}

# end_capture: when both sides have closed the connection.
end_capture()
{
    within 20 both_closed || failed "the end of the session is not in the capture" tshark
    kill -INT "${pids[tshark]}"
    ended tshark 10
    ! grep -q 'dropped' "$dir/tshark.err" || failed "the capture has holes" tshark
}

# expect_none FILTER: no such frame.
expect_none()
{
    decode -Y "$1" >"$dir/frames"
    [ ! -s "$dir/frames" ] || failed "frames with $1" frames
}

# expect_decoded: every byte belongs to a frame that Wireshark knows, every CRC is good.
expect_decoded()
{
    # A busy machine makes TCP repeat a segment; Wireshark decodes the first copy only.
    local analysis=tcp.analysis fpdus good
    local data="tcp.len > 0 && !$analysis.retransmission && !$analysis.spurious_retransmission"
    expect_none "$data && !iwarp_mpa && !tcp.reassembled_in" # a part of an FPDU that ends later
    expect_none '_ws.malformed'
    expect_none 'iwarp_mpa.bad_length'

    # What Wireshark found in the streams accounts for every byte of them. From 4.6 on it counts the
    # depths of reads (RFC 6581) apart from the private data.
    decode -Y "$data" -T fields -e tcp.len -e iwarp_mpa.pdlength -e iwarp_mpa.ulpdulength \
        >"$dir/lengths"
    awk -F '\t' '
        function fpdu(ulpdu) { return int((2 + ulpdu + 3) / 4) * 4 + 4 }
        { bytes += $1 }
        $2 != "" { found += 20 + $2 + ($1 == 24 + $2 ? 4 : 0) }
        { for (i = split($3, length_of, ","); i > 0; i--) found += fpdu(length_of[i]) }
        END { print bytes, "bytes,", found, "in frames"; exit bytes == 0 || bytes != found }
    ' "$dir/lengths" >"$dir/sum" || failed "not every byte is decoded" sum lengths

    decode -V >"$dir/text"
    fpdus=$(awk -F '\t' '{ sum += split($3, all, ",") } END { print sum + 0 }' "$dir/lengths")
    good=$(grep -c 'CRC check: .*(Good CRC32)' "$dir/text")
    [ "$good" = "$fpdus" ] || failed "$good good CRCs in $fpdus FPDUs" tshark
}

# expect_opcode COUNT OPCODE NAME [FILTER]: so many FPDUs at least.
expect_opcode()
{
    local count
    count=$(decode -Y "iwarp_rdma.opcode${4:+ && $4}" -T fields -e iwarp_rdma.opcode | tr ',' '\n' |
        grep -cixE "0x0*$2")
    [ "$count" -ge "$1" ] || failed "$count times $3, wanted $1" tshark
}

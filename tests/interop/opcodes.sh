#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every opcode, both revisions of MPA, markers, CRC on: what our own tests send and receive, as
# Wireshark and a decoder of our own (frames.py) see it.
#
# Faults of Wireshark 4.0 that this passes over: its heuristics for RPC-over-RDMA and SMB Direct claim
# short Sends (decode() switches them off), it has no name for the opcodes 8, 9 and F, and calls the
# CRC bad where both ends agreed on none.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=tests/interop/capture.sh
. "$SRCDIR/tests/interop/capture.sh"
need tshark python3

export ANYWARP_CRC=on

# look_at CAPTURE: Wireshark finds no fault; what frames.py counts goes to $dir/counts.
look_at()
{
    capture=$1
    expect_none '_ws.malformed'
    decode -Y 'tcp.len > 0' -T fields -e tcp.stream -e tcp.srcport -e tcp.payload |
        python3 "$SRCDIR/tests/interop/frames.py" >"$dir/counts" 2>"$dir/counts.err" ||
        failed "${1##*/}: not as it should be" counts
}

# counted WHAT...: there is one of each at least.
counted()
{
    local what
    for what in "$@"; do
        grep -q "^$what " "$dir/counts" || failed "${capture##*/}: no $what" counts
    done
}

# capture_test NAME: plays a test; its last process leaves NAME-*.pcapng.
capture_test()
{
    ANYWARP_PCAP=$dir/${1##*/}-%p.pcapng timeout 120 "$BUILDDIR/tests/$1" >"$dir/test" 2>&1 ||
        failed "$1: exit status $?" test
}

capture_test api/wr_test
look_at "$(echo "$dir"/wr_test-*.pcapng)"
counted 'opcode '{0,1,2,3,4,5,6,8,9,a,b,f}

capture_test api/access_test
look_at "$(echo "$dir"/access_test-*.pcapng)"
counted 'opcode 7'
expect_opcode 10 7 Terminate

capture_test hostile/markers_test
look_at "$(echo "$dir"/markers_test-*.pcapng)"
counted markers

capture_test hostile/handshake_test
cat /dev/null >"$dir/all"
for file in "$dir"/handshake_test-*.pcapng; do
    look_at "$file"
    cat "$dir/counts" >>"$dir/all"
done
mv "$dir/all" "$dir/counts"
counted 'revision 1' 'revision 2'

finish

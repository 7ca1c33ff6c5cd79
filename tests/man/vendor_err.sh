#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ibv_poll_cq(3) has each value of vendor_err, with the words of "anywarp explain".

set -u
page()
{
    sed -n '/^\.SS Vendor errors/,/^\.PD$/p' "$SRCDIR/man/ibv_poll_cq.3" |
        sed -n '/^\.B [0-9]/{N; s/^\.B \([0-9]*\)\n/\1 /; s/\\-/-/g; p}'
}
told()
{
    "$ANYWARP" explain | sed -nE 's/^ *([0-9]+)  /\1 /p'
}
[ "$(told | wc -l)" -gt 40 ] && diff <(told) <(page)

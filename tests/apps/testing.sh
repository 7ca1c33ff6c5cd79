#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# doc/testing.md: its commands find what it says they find, and its changes mend that.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need cc patch python3 taskset
! sanitized || skip "a sanitizer takes crashes for itself"

cp "$SRCDIR"/doc/testing/* "$dir"
cd "$dir" || exit 99
python3 - "$SRCDIR/doc/testing.md" <<'EOF' || failed "no changes in the text"
import re, sys
changes = re.findall(r'^```diff\n(.*?)^```', open(sys.argv[1], encoding='utf-8').read(), re.M | re.S)
for number, change in enumerate(changes, 1):
    open(f'{number}.diff', 'w', encoding='utf-8').write(change)
EOF

# build: the program as it is by now.
build()
{
    cc -g -O1 -Wall -Wextra -Werror letter.c -I"$SRCDIR/include" -L"$BUILDDIR/.libs" \
        -Wl,--allow-shlib-undefined -lrdmacm -libverbs -o letter >cc 2>cc.err || failed "cc" cc
}

# mend NUMBER: a change of the text fits as it stands there.
mend()
{
    patch -p0 --fuzz=0 letter.c "$1.diff" >patch 2>patch.err && ! grep -q offset patch ||
        failed "change $1" patch
    build
}

# says COMMAND: it stands in the text.
says()
{
    grep -qF "    \$ $1" "$SRCDIR/doc/testing.md" || failed "the text does not say: $1"
}

works()
{
    timeout -k 5 60 "$ANYWARP" run sh post.sh >out 2>out.err || failed "it does not work: $1" out
    grep -q '^64 of 64 lines say: all is well' out || failed "it does not work: $1" out
}

# sweep STATUS: its exit status.
sweep()
{
    timeout -k 5 300 "$ANYWARP" chaos --sweep sh post.sh >out 2>out.err
    status=$?
    [ $status = "$1" ] || failed "the sweep's exit status is $status" out
}

# pieces: how many runs of 8 a Write in pieces spoils.
pieces()
{
    local seed spoilt=0
    for seed in 1 2 3 4 5 6 7 8; do
        timeout -k 5 60 "$ANYWARP" chaos --seed $seed --placement sh post.sh >out 2>out.err ||
            spoilt=$((spoilt + 1))
    done
    echo $spoilt
}

says 'anywarp run sh post.sh'
build
works 'as it is'

says 'anywarp chaos --sweep sh post.sh'
sweep 1
grep -q '^1 crashed, 0 hung' out || failed "what the sweep finds" out
grep -q '^crashed: ibv_reg_mr() fails with ENOMEM' out || failed "what the sweep finds" out
mend 1
works 'with its first change'
sweep 0
grep -q '^0 crashed, 0 hung' out || failed "what the sweep still finds" out

says 'for seed in 1 2 3 4 5 6 7 8; do anywarp chaos --seed $seed --placement sh post.sh; done'
[ "$(pieces)" -gt 0 ] || failed "no run is spoilt by pieces"
mend 2
works 'with its second change'
[ "$(pieces)" = 0 ] || failed "runs are still spoilt by pieces" out

# One processor, which both processes share: there a message often comes before the receive.
shared=(taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')")

# told FINDING [COMMAND...]: whether one of some runs tells of it; how the program's threads meet is a matter of time.
told()
{
    for _ in $(seq 20); do
        timeout -k 5 60 "${@:2}" "$ANYWARP" check --error-exit 0 sh post.sh >out 2>out.err || failed "check" out
        ! grep -qE "^anywarp: (warning|error): $1" out.err || return 0
    done
    return 1
}
says 'anywarp check sh post.sh'
told late_receive "${shared[@]}" || failed "check does not find the late receive" out
mend 3
works 'with its third change'
! told late_receive "${shared[@]}" || failed "check still finds a late receive" out
told lost_wakeup || failed "check does not find the lost wake-up" out
grep -q 'at await (.*letter.c:60)' out.err || failed "where the wake-up is lost" out
mend 4
works 'with its fourth change'
! told '' || failed "check still finds something" out

says 'anywarp chaos --seed 7 --every 1 --only rst_at_message --record letter.%p sh post.sh'
rm -f letter.[0-9]*
timeout -k 5 60 "$ANYWARP" chaos --seed 7 --every 1 --only rst_at_message --record letter.%p sh post.sh >out 2>out.err
grep -qx 'letter: work failed' out.err || failed "what the program says of it" out
for file in letter.[0-9]*; do
    "$ANYWARP" record "$file"
done >out 2>out.err
for line in 'ibv_post_send QP 0x[0-9a-f]+ RDMA_WRITE wr_id 0x0 length 4096 ' '(in|out) .* QP 0x[0-9a-f]+ RST$' \
    'failure QP 0x[0-9a-f]+: ' 'state QP 0x[0-9a-f]+ from RTS to ERR$'; do
    grep -qE "$line" out || failed "the record has no $line" out
done
finish

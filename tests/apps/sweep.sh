#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# anywarp chaos --sweep finds the mistakes of prey.c, each with a command that shows it again; it
# finds no crash or hang of ours in examples.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need python3

! sanitized || skip "a sanitizer takes crashes for itself"
prey=$BUILDDIR/tests/apps/prey

# Of the calls some are made at one place (list, device, domain, two CQs, QP, channel), one is made
# three times: its first call, which leaves nothing, and its last one.
"$ANYWARP" chaos --sweep "$prey" >"$dir/text" 2>"$dir/text.err"
[ $? = 1 ] || failed "the exit status" text
grep -qE '^8 places, 9 faults, 9 tried in [0-9]+ s, on ' "$dir/text" || failed "what is tried" text
grep -qE '^1 crashed, 1 hung, 2 left something, 5 fine, 0 not met$' "$dir/text" ||
    failed "what is found" text

# finding WORD CALL PATTERN: it is there, with a line that fits.
finding()
{
    awk -v head="$1: $2" -v RS= 'index($0, head) == 1' "$dir/text" >"$dir/found"
    grep -qE -- "$3" "$dir/found" || failed "$1 $2: no /$3/" text
}
finding crashed 'ibv_create_cq()' '^  by +Segmentation fault|it said'
finding hung 'ibv_create_qp()' '^  again +anywarp chaos --at .prey@[0-9a-f]{6} create_qp process 0 1. '
finding left 'ibv_reg_mr()' '^  more +pd \+1 mr \+2 fd \+1, prey'
finding left 'ibv_create_cq()' '^  more +fd \+2, prey'
if command -v addr2line >/dev/null; then
    finding left 'ibv_reg_mr()' '^  called by regions at prey.c:'
    finding left 'ibv_reg_mr()' '(^ +|in )main at prey.c:'
fi

# The command that shows it again does so.
again=$(sed -n '/^crashed/,/^$/s/^  again *anywarp //p' "$dir/text")
timeout -k 5 60 bash -c "\"\$ANYWARP\" $again" >"$dir/again" 2>"$dir/again.err"
[ $? -ne 0 ] || failed "again: $again" again
grep -q '1 create_cq' "$dir/again.err" || failed "again: another fault" again

# As JSON, all runs.
"$ANYWARP" chaos --sweep --json "$prey" >"$dir/json" 2>"$dir/json.err"
python3 - "$dir/json" <<'EOF' || failed "json" json
import json, sys
report = json.load(open(sys.argv[1]))
runs = report['runs']
assert report['crashed'] == 1 and report['hung'] == 1 and report['left'] == 2, report
assert len(runs) == report['faults'] == 9
assert [r['left'] for r in runs if r['outcome'] == 'left'] in (['fd +2', 'pd +1 mr +2 fd +1'], ['pd +1 mr +2 fd +1', 'fd +2'])
assert all(r['again'].startswith('anywarp chaos --at ') for r in runs)
EOF

# What it cannot do, it says.
# refused STATUS PATTERN OPTION...
refused()
{
    local want=$1 pattern=$2
    shift 2
    "$ANYWARP" chaos "$@" >"$dir/out" 2>"$dir/out.err"
    status=$?
    [ $status = "$want" ] && grep -qE -- "$pattern" "$dir/out.err" || failed "chaos $*: $status" out
}
refused 1 'without any fault its exit status is 3' --sweep sh -c 'echo bad >&2; exit 3'
refused 1 'without any fault it does not end in 1 s' --sweep --seconds 1 sleep 60
refused 2 'nothing else says what happens' --sweep --seed 1 true
refused 2 'go with --sweep' --json true
refused 2 'go with --sweep' --seconds 5 true
refused 2 'should be 1 to 86400' --sweep --seconds 0 true
refused 2 'nothing else does' --at 'x y z 1 1' --only late true

# Nothing to fail, and a budget that is over.
"$ANYWARP" chaos --sweep true >"$dir/none" 2>&1 || failed "no calls" none
grep -q '^0 places, 0 faults' "$dir/none" || failed "no calls" none
"$ANYWARP" chaos --sweep --seconds 2 sh -c "sleep 1.5; '$prey'" >"$dir/short" 2>&1
grep -qE '^8 places, 9 faults, [0-2] tried' "$dir/short" || failed "a short budget" short

# Two programs in one command, told apart by their arguments.
port=$(free_port)
cat >"$dir/both" <<EOF
'$BUILDDIR/src/tools/bin/.libs/rping' -s -a 127.0.0.1 -p $port -C 1 & s=\$!
sleep 0.1
'$BUILDDIR/src/tools/bin/.libs/rping' -c -a 127.0.0.1 -p $port -C 1; r=\$?
sleep 0.05
kill \$s 2>/dev/null
wait \$s
exit \$r
EOF
"$ANYWARP" chaos --sweep --seconds 120 sh "$dir/both" >"$dir/rping" 2>"$dir/rping.err"
grep -qE '^0 crashed, 0 hung, ' "$dir/rping" || failed "our rping" rping
finish

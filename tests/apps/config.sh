#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The environment variables: what the sources read, "anywarp config" and README say the same.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need python3

for variable in $(compgen -e | grep -E '^(ANYWARP_|VERBS_LOG_|IBV_CONFIG_DIR|SYSFS_PATH)'); do
    unset "$variable"
done

# expect STATUS PATTERN ARGUMENT...: of anywarp config; what both streams say matches the pattern.
expect()
{
    local want=$1 pattern=$2 output status
    shift 2
    output=$("$ANYWARP" config "$@" 2>&1)
    status=$?
    if [ $status != "$want" ] || ! grep -qE -- "$pattern" <<<"$output"; then
        failed "config $*: status $status, wanted $want; output, wanted /$pattern/: $output"
    fi
}

expect 0 '^ANYWARP_SPIN_US: not set$'
expect 0 '^    number: 0 to 1000000 \(default 50\)$' ANYWARP_SPIN_US
expect 0 '^    CRC32c of each FPDU; .* a peer$' ANYWARP_CRC
expect 1 'ANYWARP_NONE: no such variable' ANYWARP_CRC ANYWARP_NONE
ANYWARP_SPIN_US=7 expect 0 '^ANYWARP_SPIN_US=7$'
ANYWARP_SPIN_US=x expect 0 '^ANYWARP_SPIN_US=x: not understood, 50 is in force$'
ANYWARP_TLS=x expect 0 '^ANYWARP_TLS=x: not understood, require is in force$'
VERBS_LOG_LEVEL=99 expect 0 '^VERBS_LOG_LEVEL=99: not understood, 4 is in force$'
VERBS_LOG_LEVEL=x expect 0 '^VERBS_LOG_LEVEL=x: not understood, 0 is in force$'
ANYWARP_SPIN_US='' expect 0 '^ANYWARP_SPIN_US: not set$'
[ "$("$ANYWARP" config ANYWARP_EXT ANYWARP_CRC | grep -c '^[A-Z]')" = 2 ] ||
    failed "config with two names does not print two variables"
longest=$("$ANYWARP" config | grep -v '^    number\|^    list' | wc -L)
[ "$longest" -lt 80 ] || failed "config prints lines of $longest columns"

ANYWARP_CONGESTION=$'a"\\\n\x01\xff\xc3\xa9' ANYWARP_CRC=maybe "$ANYWARP" config --json >"$dir/json"
ANYWARP_CONGESTION=$'a"\\\n\x01\xff\xc3\xa9' "$ANYWARP" config -j ANYWARP_CONGESTION >"$dir/one"
cat >"$dir/check.py" <<'PYTHON'
import json, pathlib, re, sys

source, folder = map(pathlib.Path, sys.argv[1:])
knobs = json.loads((folder / "json").read_bytes())
one, = json.loads((folder / "one").read_bytes())
assert one["value"] == 'a"\\\n\x01\ufffd\u00e9', one
assert [k["name"] for k in knobs if not k["legal"]] == ["ANYWARP_CRC"], knobs

pattern = r"^\| `([A-Z_]+)` \| (.*?) \| (.*?) \| (.*?) \|$"
rows = re.findall(pattern, (source / "README.md").read_text(), re.M)
readme = [tuple(field.replace("`", "") for field in row) for row in rows]
table = [(k["name"], k["values"], k["default"] or "none", k["meaning"]) for k in knobs]
for said, meant in zip(readme + [None] * len(table), table):
    assert said == meant, f"README.md: {said}\nanywarp config: {meant}"
assert len(readme) == len(table), readme[len(table):]

# Whatever a source asks the environment for stands in the table, and is asked for somewhere.
names = {k["name"] for k in knobs}
text = "".join(f.read_text() for d in ("iwarp", "cma") for f in (source / "src" / d).rglob("*.c"))
asked = set(re.findall(r'getenv\("(\w+)"\)', text))
assert asked <= names, asked - names
for name in names:
    assert text.count(f'"{name}"') == (2 if name in asked else 1), name
calls = set(re.findall(r"getenv\(([^)]*)\)", text))
assert calls == {f'"{name}"' for name in asked} | {"k->name"}, calls
PYTHON
python3 "$dir/check.py" "$SRCDIR" "$dir" >"$dir/check" 2>&1 || failed "the tables differ" check

finish

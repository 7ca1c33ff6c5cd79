#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What doc/how-it-works.md and HACKING.md name is there: each function, as `name()`, unless it is
# libc's or an inline of the verbs header, and each source file, as `room/file.c`. The functions that
# the first tells of can be read on one screen.

set -u
export LC_ALL=C
cd "$SRCDIR" || exit 99
status=0
names=0

fail()
{
    echo "FAILED: $*"
    status=1
}

for page in doc/how-it-works.md HACKING.md; do
    while read -r name; do
        names=$((names + 1))
        grep -rqE --include='*.[ch]' -- "^[A-Za-z_].*[ *]$name\\(" src || fail "$page: there is no $name()"
    done < <(grep -oE '`[a-z0-9_]+\(\)`' "$page" | tr -d '`()' | grep -vxE 'ibv_.*|fork|free|sendmsg' | sort -u)
    while read -r file; do
        names=$((names + 1))
        ls {src,src/iwarp,tests/interop,.}/"$file" 2>/dev/null | grep -q . ||
            fail "$page: there is no $file"
    done < <(grep -oE '`[a-z_]+/[a-z_0-9/]+\.[ch]`' "$page" | tr -d '`' | sort -u)
done
# "LINES NAME FILE" of each function.
lengths()
{
    find src -name '*.[ch]' -exec awk '
        /^[A-Za-z_]/ { name = match($0, /[a-z_0-9]+\(/) ? substr($0, RSTART, RLENGTH - 1) : "" }
        /^{/ { begin = FNR }
        /^}/ && name { print FNR - begin - 1, name, FILENAME }' {} +
}
lengths=$(lengths)
[ "$(wc -l <<<"$lengths")" -gt 2000 ] || fail 'too few functions were found'
while read -r name; do
    found=$(awk -v name="$name" '$2 == name && $1 > 40' <<<"$lengths")
    [ -z "$found" ] || fail "more than 40 lines: $found"
done < <(grep -oE '`[a-z0-9_]+\(\)`' doc/how-it-works.md | tr -d '`()' | sort -u)

[ "$names" -gt 60 ] || fail "only $names names were found: the pages are not read"

[ -e doc/rooms.svg ] || fail 'no doc/rooms.svg'
for page in README.md HACKING.md; do
    grep -qF '(doc/how-it-works.md)' "$page" || fail "$page does not lead to doc/how-it-works.md"
done
exit $status

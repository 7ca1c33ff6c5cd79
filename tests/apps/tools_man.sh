#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The manual pages of the tools: sound, whole, and with every command and option that the help has.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need man
own=$BUILDDIR/src/tools/bin

# check_page PAGE: no complaints, and the sections that each of ours has.
check_page()
{
    local section page=$SRCDIR/man/$1
    LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
        man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>"$dir/$1" >/dev/null
    [ ! -s "$dir/$1" ] || failed "man complains about $1" "$1"
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' ENVIRONMENT FILES EXAMPLE \
        'SEE ALSO'; do
        grep -qx "\.SH $section" "$page" || failed "$1 has no section $section"
    done
    MANWIDTH=80 man -l "$page" | col -b >"$dir/text" 2>/dev/null
}

# says WORD...: the page that was checked last has them all.
says()
{
    local word
    for word in "$@"; do
        grep -qE -- "(^|[^a-z-])$word([^a-z-]|\$)" "$dir/text" || failed "$page does not say $word"
    done
}

# options COMMAND...: the options in its help.
options()
{
    "$@" --help | grep -oE '^  -[^ ]*( --[a-z-]+)?' | grep -oE -- '-[a-z-]+'
}

page=anywarp.1
check_page $page
for command in $("$ANYWARP" --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
    # shellcheck disable=SC2046
    says "anywarp $command" $(options "$ANYWARP" "$command")
done
for program in ibv_devices ibv_devinfo; do
    page=$program.1anywarp
    check_page $page
    # shellcheck disable=SC2046
    says -h --help $(options "$own/$program")
done
page=ofedctrl.1anywarp
check_page $page
# shellcheck disable=SC2046
says $("$own/ofedctrl" -h | grep -oE '^  -[a-z]')

finish

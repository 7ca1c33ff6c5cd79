#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Inside a folder, too, files call downwards only: by the symbols of their objects, none that a file
# uses leads back to it.

set -u
export LC_ALL=C
status=0

# arrows FOLDER: "USER USED" for each pair of its files of which one uses a symbol of the other.
arrows()
{
    local source name object
    for source in "$SRCDIR/$1"/*.c; do
        name=$(basename "$source" .c)
        for object in "$BUILDDIR/$1"/.libs/{,lib*_la-}"$name.o"; do
            [ ! -e "$object" ] || nm -g "$object" | awk -v file="$name" '{ print file, $(NF - 1), $NF }'
        done
    done | awk '
        $2 == "U" { uses[$1, $3]; next }
        { home[$3] = $1 }
        END {
            for (use in uses) {
                split(use, at, SUBSEP)
                if (at[2] in home && home[at[2]] != at[1])
                    print at[1], home[at[2]]
            }
        }' | sort -u
}

for folder in src/cma; do
    found=$(arrows "$folder")
    if [ "$(wc -l <<<"$found")" -lt 20 ]; then
        echo "FAILED: $folder: cannot read its objects"
        status=1
    elif ! circle=$(tsort <<<"$found" 2>&1 >/dev/null); then
        echo "FAILED: $folder: these files call each other in a circle:"
        sed -n 's/^tsort: \([a-z_0-9]*\)$/    \1.c/p' <<<"$circle"
        status=1
    fi
done
exit $status

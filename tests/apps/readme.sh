#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# README.md: its commands run as they stand there and print what it shows; the table of programs
# holds; what it names is there.

# shellcheck source=tests/apps/commands.sh
. "$SRCDIR/tests/apps/commands.sh"
private_network "$@"
# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need python3 rping ibv_devices ib_write_bw tshark
readme=$SRCDIR/README.md
PATH=$PATH:${ANYWARP%/*}:$BUILDDIR/examples
mkdir "$dir/work" "$dir/blocks"
ln -s "${ANYWARP%/*}" "$dir/work/build"

# Blocks, one a file, and the rows of the table of programs: server, client, what is seen.
python3 - "$readme" "$dir" <<'PYTHON' || exit 99
import pathlib, re, sys

text, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
assert "```" not in text, "a fenced block: the test reads indented ones"
for at, block in enumerate(re.findall(r"(?:^    .*\n)+", text, re.M)):
    lines = [line[4:] for line in block.splitlines(True)]
    (folder / f"blocks/{at:02}").write_text("".join(lines))
rows = text.split("| program | server | client | seen |\n|---|---|---|---|\n")[1].split("\n\n")[0]
with open(folder / "rows", "w") as f:
    for row in rows.splitlines():
        server, client, seen = (re.findall("`(.*?)`", cell) for cell in row.split("|")[2:5])
        assert len(server) < 2 and len(client) == 1 and seen, row
        print("".join(server) or "-", client[0], *seen, sep="\t", file=f)
PYTHON

# elsewhere COMMAND: whether it is not for this test, and why.
elsewhere()
{
    local file text
    case $1 in
    ./quickstart)
        # Installs packages, as root. It runs rping, whose lines are shown, as the next block does.
        while read -r text; do
            grep -qF -- "step \"${text#==> }" "$SRCDIR/quickstart" || failed "quickstart: $text"
        done < <(grep '^==>' "$block")
        file=quickstart
        ;;
    'make -C build install '* | 'autoreconf '*) file=tests/pkg/installed.sh ;; # runs these blocks
    'make -C build bench') file=tests/bench/smoke.sh ;; # a short run; this takes minutes
    'tar -xf anywarp-'*) file=tests/bundle/releases ;;  # plays it, where there is a bundle
    *) return 1 ;;
    esac
    [ -e "$SRCDIR/$file" ] || failed "there is no $file"
}

export ANYWARP_STATS=$dir/stats # no other test clears it, or leaves something there
for block in "$dir"/blocks/*; do
    command=$(sed -n '1s/^\$ //p' "$block")
    [ -n "$command" ] || failed "a block does not begin with a command: $(cat "$block")"
    # Its client fails, which is what it shows.
    case $command in
    'export VERBS_LOG_LEVEL=2' | 'anywarp ping '*) sed -i -E 's/^\$.* 127.0.0.1( 9)?$/& || true/' "$block" ;;
    esac
    elsewhere "$command" || play "$command" "$block" -e
done
for file in quickstart check bench/run tests/interop/siw/matrix; do
    [ -x "$SRCDIR/$file" ] || failed "$file cannot be run"
done

# row CLIENT: plays the row in $dir/work/lines. Over rxm, libfabric itself posts a receive to an endpoint
# that it has closed, and crashes, in a few of a hundred plays on a busy machine: up to three tries.
row()
{
    local before=$failures tries=1
    [[ $1 != *ofi_rxm* ]] || tries=3
    until play "$1" "$dir/work/lines" -e && [ "$failures" = "$before" ] || [ $((--tries)) = 0 ]; do
        echo "once more: $1"
        failures=$before
    done
}

# The server goes first, and stays or ends by itself; the client shows what was seen.
played=0
while IFS=$'\t' read -r server client seen; do
    command -v "${client%% *}" >/dev/null || { echo "${client%% *} is not installed" && continue; }
    [ "${client%% *}" != cmtime ] || cmtime_fits || continue
    : >"$dir/work/lines"
    [ "$server" = - ] || echo "\$ anywarp run $server &" >>"$dir/work/lines"
    echo "\$ anywarp run $client" >>"$dir/work/lines"
    tr '\t' '\n' <<<"$seen" >>"$dir/work/lines"
    row "$client"
    played=$((played + 1))
done <"$dir/rows"
[ $played -gt 10 ] || failed "only $played programs"

# What it points to.
while read -r file; do
    [ -e "$SRCDIR/$file" ] || failed "README points to $file"
done < <(grep -oE '\]\([^)]+\)' "$readme" | tr -d ']()')

finish

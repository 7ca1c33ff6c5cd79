#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What "make fuzz" does: builds the targets with clang in ./fuzz of the build tree and runs each for
# FUZZ_SECONDS from its corpus on. FUZZ_TARGETS names those to run. What they find is kept in
# fuzz/NAME; inputs that broke a target in fuzz/NAME-broken, which "tests/fuzz/NAME_fuzz FILE"
# plays again in any build tree.
# run.sh --hex FILE...: inputs as lines for a corpus.

set -u

if [ "${1-}" = --hex ]; then
    shift
    for file in "$@"; do
        od -An -v -tx1 "$file" | tr -d ' \n'
        echo
    done
    exit
fi

seconds=${FUZZ_SECONDS:-60}
targets=${FUZZ_TARGETS:-datagram ddp fpdu hello mpa nego rdmap ring rsocket sidr stream terminate tls uverbs}
clang=${FUZZ_CC:-clang}
sanitizers=address,undefined,fuzzer-no-link

has_libfuzzer()
{
    local out
    out=$(mktemp) || return
    echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n < 0; }' |
        "$clang" -x c -fsanitize=fuzzer,address,undefined -o "$out" - 2>/dev/null
    local status=$?
    rm -f "$out"
    return $status
}

has_libfuzzer || {
    echo "make fuzz needs clang with libFuzzer (Debian: apt-get install clang libclang-rt-dev);" \
        "FUZZ_CC names another compiler than $clang"
    exit 1
}
mkdir -p fuzz && cd fuzz || exit
if [ ! -e Makefile ]; then
    "$SRCDIR/configure" --quiet CC="$clang" --enable-sanitize=$sanitizers || exit
fi
programs=()
for target in $targets; do
    programs+=("tests/fuzz/${target}_fuzz")
done
make --no-print-directory -j"${FUZZ_JOBS:-2}" "${programs[@]}" || exit

# unpack NAME: the corpus, an input a file, as libFuzzer wants it.
unpack()
{
    local line n=0
    mkdir -p "$1" || return
    while read -r line; do
        case $line in '' | '#'*) continue ;; esac
        n=$((n + 1))
        # shellcheck disable=SC2001
        printf '%b' "$(sed 's/../\\x&/g' <<<"$line")" >"$1/corpus-$n"
    done <"$SRCDIR/tests/fuzz/corpus/$1.hex"
}

status=0
for target in $targets; do
    unpack "$target" && mkdir -p "$target-broken" || exit
    echo "==> $target, $seconds s"
    "tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -max_len=2048 -print_final_stats=1 \
        -artifact_prefix="$target-broken/" "$target" >"$target.log" 2>&1 || {
        status=1
        grep -E 'not true|ERROR: |Test unit written|runtime error' "$target.log"
    }
    grep -E 'DONE|number_of_executed_units|average_exec_per_sec' "$target.log"
done
exit $status

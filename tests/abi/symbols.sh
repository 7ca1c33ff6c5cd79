#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the libraries export: the names, version nodes and chain of nodes that programs built for
# rdma-core 44 are bound to. The *.symbols files list them; they lack the twins at IBVERBS_1.0 of
# functions that also exist at a later node, which no program of the last decade uses.

set -u
export LC_ALL=C
failures=0

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# exported LIBRARY: NAME@NODE of every defined function and object.
exported()
{
    readelf -W --dyn-syms "$1" |
        awk '($4 == "FUNC" || $4 == "OBJECT") && $7 ~ /^[0-9]+$/ { print $8 }' |
        sed 's/@@/@/' | sort
}

# chain LIBRARY: "NODE <- PARENT" of every node that is defined, "NODE" if it has none.
chain()
{
    readelf -W -V "$1" | awk '
        /^Version needs section/ { exit }
        /Rev: 1 / { if (node) print node; node = $NF; base = /Flags: BASE/; if (base) node = "" }
        /Parent 1:/ && node { node = node " <- " $NF }
        END { if (node) print node }'
}

# check LIBRARY SONAME LIST CHAIN [PATTERN of further names that may be there]
check()
{
    local lib=$1 soname=$2 list=$3 want=$4 private=${5:-^$} found
    readelf -W -d "$lib" | grep -q "SONAME.*\[$soname\]" || fail "$lib: soname is not $soname"
    found=$(diff "$list" <(exported "$lib" | grep -vE "$private"))
    [ -z "$found" ] || fail "$lib: exports differ, < missing, > not expected:"$'\n'"$found"
    found=$(diff <(echo "$want") <(chain "$lib"))
    [ -z "$found" ] || fail "$lib: nodes differ, < wanted:"$'\n'"$found"
}

here=$SRCDIR/tests/abi
verbs=$BUILDDIR/.libs/libibverbs.so.1
cm=$BUILDDIR/.libs/librdmacm.so.1

check "$verbs" libibverbs.so.1 "$here/libibverbs.symbols" \
'IBVERBS_1.0
IBVERBS_1.1 <- IBVERBS_1.0
IBVERBS_1.5 <- IBVERBS_1.1
IBVERBS_1.6 <- IBVERBS_1.5
IBVERBS_1.7 <- IBVERBS_1.6
IBVERBS_1.8 <- IBVERBS_1.7
IBVERBS_1.9 <- IBVERBS_1.8
IBVERBS_1.10 <- IBVERBS_1.9
IBVERBS_1.11 <- IBVERBS_1.10
IBVERBS_1.12 <- IBVERBS_1.11
IBVERBS_1.13 <- IBVERBS_1.12
IBVERBS_1.14 <- IBVERBS_1.13
IBVERBS_PRIVATE_34
ANYWARP_1.0
ANYWARP_PRIVATE_1' '^iw_(cm|eventfd)_[a-z_]*@ANYWARP_PRIVATE_1$'

exported "$verbs" | grep -q '^iw_cm_connect@ANYWARP_PRIVATE_1$' ||
    fail "$verbs: librdmacm's door is not exported"

# Providers look at this one as data. Clang's address sanitizer makes it larger.
size=1
readelf -W --dyn-syms "$verbs" | grep -q ' __asan_' && size='[0-9]+'
readelf -W --dyn-syms "$verbs" |
    grep -qE " $size OBJECT .* verbs_allow_disassociate_destroy@@IBVERBS_PRIVATE_34\$" ||
    fail "$verbs: verbs_allow_disassociate_destroy is not an object of one byte"

check "$cm" librdmacm.so.1 "$here/librdmacm.symbols" \
'RDMACM_1.0
RDMACM_1.1 <- RDMACM_1.0
RDMACM_1.2 <- RDMACM_1.1
RDMACM_1.3 <- RDMACM_1.2'

# The lists themselves: every name is one that the installed rdma-core exports too, or our own.
for name in libibverbs librdmacm; do
    real=$(ldconfig -p | awk -v n="$name.so.1" '$1 == n { print $NF; exit }')
    exported "${real:-/dev/null}" 2>/dev/null | grep -qE '@(IBVERBS_PRIVATE_34|RDMACM_1.3)$' || continue
    found=$(grep -v '@ANYWARP_1\.0$' "$here/$name.symbols" | comm -23 - <(exported "$real"))
    [ -z "$found" ] || fail "$name.symbols has what $real has not:"$'\n'"$found"
done

[ $failures = 0 ]

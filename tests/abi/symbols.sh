#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the libraries export: the names, version nodes and chain of nodes that programs and providers
# of rdma-core 33 to 65 are bound to. LIBRARY.symbols lists what is public, LIBRARY-N.symbols all that
# rdma-core N exports. We lack the twins at IBVERBS_1.0 of functions that also exist at a later node,
# which no program of the last decade uses.

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

# release FILE: what a release exports, without the twins.
release()
{
    awk -F@ 'NR == FNR { at[$1, $2]; next } $2 != "IBVERBS_1.0" || !(($1, "IBVERBS_1.1") in at)' \
        "$1" "$1"
}

# whole NAME LIBRARY: all that each release exports is there, and nothing public that none has.
whole()
{
    local name=$1 lib=$2 n found
    for n in 33 44 56 65; do
        found=$(release "$here/$name-$n.symbols" | comm -23 - <(exported "$lib"))
        [ -z "$found" ] || fail "$lib lacks of rdma-core $n:"$'\n'"$found"
    done
    found=$(grep -v '@ANYWARP_1\.0$' "$here/$name.symbols" |
        comm -23 - <(sort -u "$here/$name"-*.symbols))
    [ -z "$found" ] || fail "$name.symbols has what no release has:"$'\n'"$found"
}

here=$SRCDIR/tests/abi
verbs=$BUILDDIR/.libs/libibverbs.so.1
cm=$BUILDDIR/.libs/librdmacm.so.1
providers='33 34 57 59 64 65'

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
IBVERBS_1.15 <- IBVERBS_1.14
IBVERBS_1.16 <- IBVERBS_1.15
IBVERBS_1.17 <- IBVERBS_1.16
IBVERBS_1.18 <- IBVERBS_1.17
IBVERBS_PRIVATE_33
IBVERBS_PRIVATE_34
IBVERBS_PRIVATE_57
IBVERBS_PRIVATE_59
IBVERBS_PRIVATE_64
IBVERBS_PRIVATE_65
ANYWARP_1.0
ANYWARP_PRIVATE_1' '^iw_(cm|eventfd|sidr)_[a-z_]*@ANYWARP_PRIVATE_1$|@IBVERBS_PRIVATE_'

exported "$verbs" | grep -q '^iw_cm_connect@ANYWARP_PRIVATE_1$' ||
    fail "$verbs: librdmacm's door is not exported"

# Each node for providers has the names of all of them.
union=$(cat "$here"/libibverbs-*.symbols | sed -n 's/@IBVERBS_PRIVATE_.*//p' |
    grep -v '^verbs_register_driver_' | sort -u)
[ "$(wc -l <<<"$union")" -ge 90 ] || fail 'the lists have too few names of providers'
for n in $providers; do
    found=$(diff <(sort <<<"$union"$'\n'verbs_register_driver_"$n") \
        <(exported "$verbs" | sed -n "s/@IBVERBS_PRIVATE_$n\$//p" | sort))
    [ -z "$found" ] || fail "IBVERBS_PRIVATE_$n: < missing, > not expected:"$'\n'"$found"
    # Providers look at this one as data.
    readelf -W --dyn-syms "$verbs" |
        grep -qE " 1 OBJECT .* verbs_allow_disassociate_destroy@+IBVERBS_PRIVATE_$n\$" ||
        fail "$verbs: verbs_allow_disassociate_destroy@IBVERBS_PRIVATE_$n is not one byte"
done

check "$cm" librdmacm.so.1 "$here/librdmacm.symbols" \
'RDMACM_1.0
RDMACM_1.1 <- RDMACM_1.0
RDMACM_1.2 <- RDMACM_1.1
RDMACM_1.3 <- RDMACM_1.2
RDMACM_1.4 <- RDMACM_1.3
RDMACM_1.5 <- RDMACM_1.4
ANYWARP_PRIVATE_1' '^rs_[a-z_]*@ANYWARP_PRIVATE_1$|^ANYWARP_PRIVATE_1@'

check "$BUILDDIR/.libs/libibal.so.1" libibal.so.1 "$here/libibal.symbols" IBAL_1.0
check "$BUILDDIR/.libs/libkverbs.so.1" libkverbs.so.1 "$here/libkverbs.symbols" KVERBS_1

whole libibverbs "$verbs"
whole librdmacm "$cm"

# The names of libc that rdma-core's newest librspreload.so takes, without a node.
found=$(comm -23 "$here/librspreload.symbols" <(exported "$BUILDDIR/.libs/librspreload.so"))
[ -z "$found" ] || fail "librspreload.so lacks:"$'\n'"$found"

[ $failures = 0 ]

#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Prints the assembler file that puts every name of private.names, read from standard input, at every
# version node of providers. No compiler sees it as a whole program: it may not be told what a symbol
# version is, and an optimizer at link time would drop what nothing calls.

set -eu
nodes='33 34 57 59 64 65'
preferred=34 # what programs are bound to that are linked with this library

cat <<'END'
/* Made by nodes.sh from private.names. */
#if defined(__x86_64__) || defined(__i386__)
#define JUMP jmp
#elif defined(__aarch64__)
#define JUMP b
#elif defined(__riscv)
#define JUMP tail
#elif defined(__s390x__)
#define JUMP jg
#else
#error "nodes.sh does not know how this machine jumps to a hidden function"
#endif
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

    .section .bss
    .type byte, %object
    .size byte, 1
byte:
    .zero 1

    .text
    .macro jump target
    .hidden \target
    .balign 16
    .type to_\target, %function
to_\target:
    .cfi_startproc
    _CET_ENDBR
    JUMP \target
    .cfi_endproc
    .size to_\target, . - to_\target
    .endm

    .macro known alias, versioned, at, kind, bytes
    .globl \alias
    .type \alias, %\kind
    .size \alias, \bytes
    .set \alias, \at
    .symver \alias, \versioned
    .endm

END
awk -v nodes="$nodes" -v preferred="$preferred" '
    function known(name, node, to,    at) {
        at = node == preferred ? "@@" : "@"
        printf "    known %s.%s, %s%sIBVERBS_PRIVATE_%s, %s\n", name, node, name, at, node, to
    }
    /^#/ || !NF { next }
    $2 == "byte" { to[$1] = "byte, object, 1"; order[++names] = $1; next }
    {
        if (!($2 in jump)) {
            jump[$2] = 1
            print "    jump " $2
        }
        to[$1] = "to_" $2 ", function, 0"
        order[++names] = $1
    }
    END {
        n = split(nodes, node, " ")
        for (i = 1; i <= names; i++)
            for (j = 1; j <= n; j++)
                known(order[i], node[j], to[order[i]])
        for (j = 1; j <= n; j++)
            known("verbs_register_driver_" node[j], node[j], "to_private_nothing, function, 0")
    }'
cat <<'END'

    .section .note.GNU-stack, "", %progbits
END

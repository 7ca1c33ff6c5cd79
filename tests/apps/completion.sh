#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion in bash: every command and option that the help has, and nothing else.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
# shellcheck source=src/tools/completion/anywarp
. "$SRCDIR/src/tools/completion/anywarp"

# complete_line WORD...: what is offered for the last word of "anywarp WORD...", in $offered.
complete_line()
{
    COMP_WORDS=("$ANYWARP" "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _anywarp "$ANYWARP"
    offered=" ${COMPREPLY[*]} "
}

in_order()
{
    printf '%s\n' "$@" | sort
}

# offers WANTED WORD...: exactly the words of WANTED, in any order.
offers()
{
    local wanted=$1
    shift
    complete_line "$@"
    # shellcheck disable=SC2086
    [ "$(in_order $offered)" = "$(in_order $wanted)" ] ||
        failed "anywarp $*: offers$offered, wanted $wanted"
}

# offers_too WANTED WORD...: WANTED among others.
offers_too()
{
    local wanted=$1
    shift
    complete_line "$@"
    [[ $offered == *" $wanted "* ]] || failed "anywarp $*: offers$offered, not $wanted"
}

complete -p anywarp | grep -q _anywarp || failed "no completion is registered"
commands=$("$ANYWARP" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 5 ] || failed "commands: $commands"
offers "$commands --help --version" ''
offers 'run' ru
offers 'devices doctor' d
offers 'doctor' help 'do'
for command in $commands; do
    options=$("$ANYWARP" "$command" --help | grep -oE '^  -[^ ]*( --[a-z-]+)?' | tr -d ,)
    offers "$options --help" "$command" -
done
offers '--json' devices --j
offers '--env' run --e
offers 'ANYWARP_CRC=' run -e ANYWARP_CR
offers 'ANYWARP_CRC' config ANYWARP_CR
offers 'ANYWARP_EXT' config --json ANYWARP_EX
offers_too printf run prin
offers_too printf run -- prin
offers_too printf run -e ANYWARP_CRC = on prin
offers_too printf doctor prin
offers '' run printf -
offers '' no-such-command -

_command_offset()
{
    COMPREPLY=("offset$1")
}
offers 'offset2' run printf -
offers 'offset6' run -e A = B rping -s

finish

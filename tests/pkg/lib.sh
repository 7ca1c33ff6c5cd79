# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Functions of the tests that build from what "make dist" packs.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
chmod 755 "$dir" # for those who are not root
unset MAKEFLAGS MFLAGS LD_LIBRARY_PATH

# quietly COMMAND...: what it prints is shown if it fails, and then nothing else can be tried.
quietly()
{
    local begin=$SECONDS
    "$@" >"$dir/log" 2>&1 </dev/null || {
        failed "$*" log
        exit 1
    }
    step "$((SECONDS - begin)) s: $*"
}

# unpacked BUILD-TREE FOLDER: what "make dist" packs, into FOLDER/$name, whose version is $version.
unpacked()
{
    quietly make -C "$1" distdir
    version=$(sed -n 's/^PACKAGE_VERSION = //p' "$1/Makefile")
    name=anywarp-$version
    mv "$1/$name" "$2"
}

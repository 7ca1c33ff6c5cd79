#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A command that looks for all beside itself, as that of the bundle does: from a folder with blanks in
# its name, by a symbolic link, and after the folder has got another name.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"

make_folder()
{
    mkdir -p "$1/bin" "$1/lib/anywarp/bin"
    cp "$BUILDDIR/tests/bundle/anywarp" "$1/bin/anywarp"
    cp "$BUILDDIR"/.libs/lib{ibverbs,rdmacm}.so.1 "$1/lib/anywarp"
    cp "$BUILDDIR/.libs/libanywarp-uverbs-preload.so" "$1/lib/anywarp"
    printf '#!/bin/sh\necho its own\n' >"$1/lib/anywarp/bin/own"
    chmod +x "$1/lib/anywarp/bin/own"
}

# expect PATTERN COMMAND...: it ends well and prints what matches the pattern.
expect()
{
    local pattern=$1
    shift
    "$@" >"$dir/out" 2>"$dir/out.err" && grep -qE -- "$pattern" "$dir/out" ||
        failed "$*: wanted $pattern" out
}

# works FOLDER COMMAND
works()
{
    expect "^$1/lib/anywarp\$" env -u LD_LIBRARY_PATH "$2" run printenv LD_LIBRARY_PATH
    expect '^its own$' "$2" run own
    expect "^$1/lib/anywarp\$" sh -c "unset LD_LIBRARY_PATH; eval \"\$('$2' env)\"; printenv LD_LIBRARY_PATH"
    expect "libibverbs.so.1 and librdmacm.so.1 of" "$2" doctor
    expect '^anywarp0: iWARP' "$2" devices
}

make_folder "$dir/one \$place"
works "$dir/one \\\$place" "$dir/one \$place/bin/anywarp"
ln -s "$dir/one \$place/bin/anywarp" "$dir/link"
works "$dir/one \\\$place" "$dir/link"
mv "$dir/one \$place" "$dir/another"
works "$dir/another" "$dir/another/bin/anywarp"

# What cannot work says why.
rm "$dir/another/lib/anywarp/librdmacm.so.1"
"$dir/another/bin/anywarp" run true 2>"$dir/out.err"
[ $? = 1 ] && grep -q 'librdmacm.so.1 is missing' "$dir/out.err" || failed 'without librdmacm' out

# refused FOLDER PATTERN ARGUMENT...: the loader's lists have no quotes, so nothing is begun.
refused()
{
    local folder=$1 pattern=$2
    shift 2
    make_folder "$folder"
    "$folder/bin/anywarp" "$@" >"$dir/out" 2>"$dir/out.err"
    [ $? = 1 ] && grep -qE -- "$pattern" "$dir/out.err" && [ ! -s "$dir/out" ] ||
        failed "$folder: $*" out
}
for command in 'run echo it runs' env doctor; do
    # shellcheck disable=SC2086
    {
        refused "$dir/a:b" "a:b/.*without ':' and ';'" $command
        refused "$dir/a;b" "a;b/.*without ':' and ';'" $command
        refused "$dir/\$LIB" 'without \$ORIGIN, \$LIB' $command
        refused "$dir/a\${ORIGIN}b" 'without \$ORIGIN, \$LIB' $command
    }
done
refused "$dir/a blank" 'a blank/.*without blanks' run --system-libraries echo it runs
expect '^it runs$' "$dir/a blank/bin/anywarp" run echo it runs
finish

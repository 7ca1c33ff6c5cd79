#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Our own ibv_devices, ibv_devinfo and ofedctrl.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
own=$BUILDDIR/src/tools/bin
unset IBV_CONFIG_DIR ANYWARP_DEVICES

# expect STATUS PATTERN COMMAND...: its exit status; a line of what it says matches the pattern.
expect()
{
    local want=$1 pattern=$2 output status
    shift 2
    output=$(timeout 20 "$ANYWARP" run "$@" 2>&1)
    status=$?
    if [ $status != "$want" ] || ! grep -qP -- "$pattern" <<<"$output"; then
        failed "$*: status $status, wanted $want; output, wanted /$pattern/: $output"
    fi
}

expect 0 '^ +anywarp0 +\t[0-9a-f]{16}$' "$own/ibv_devices"
expect 0 '^usage: ibv_devices$' "$own/ibv_devices" --help
expect 2 '^usage: ibv_devices$' "$own/ibv_devices" extra
expect 2 "invalid option -- 'x'" "$own/ibv_devices" -x

expect 0 '^\t\t\tGID\[ +1\]:\t\t[0-9a-f:.]+, RoCE v2$' "$own/ibv_devinfo" -v
for arguments in '' '-d anywarp0' '-i 1' '--ib-dev=anywarp0 --ib-port=1'; do
    # shellcheck disable=SC2086
    expect 0 '^\t\t\tlink_layer:\t\tEthernet$' "$own/ibv_devinfo" $arguments
done
for arguments in -l --list; do
    expect 0 '^1 HCA found:$' "$own/ibv_devinfo" $arguments
    expect 0 '^\tanywarp0$' "$own/ibv_devinfo" $arguments
done
expect 0 '^  -d, --ib-dev=DEVICE' "$own/ibv_devinfo" --help
expect 1 "^IB device 'none' wasn't found" "$own/ibv_devinfo" -d none
expect 1 'anywarp0: there is no such port' "$own/ibv_devinfo" -i 2
for arguments in '-i 0' '-i 256' '-i 1x' '-i -1' -x anywarp0; do
    # shellcheck disable=SC2086
    expect 2 '^usage: ibv_devinfo' "$own/ibv_devinfo" $arguments
done
ANYWARP_DEVICES='aw0=lo aw1=lo' expect 0 '^2 HCAs found:$' "$own/ibv_devinfo" -l
ANYWARP_DEVICES='aw0=lo aw1=lo' expect 0 '^hca_id:\taw1$' "$own/ibv_devinfo"
ANYWARP_DEVICES='rc0=roce:lo' expect 0 '^\t\t\tGID\[ +0\]:\t\t::ffff:127.0.0.1, RoCE v2$' "$own/ibv_devinfo" -v
for program in ibv_devices ibv_devinfo 'ibv_devinfo -l'; do
    # shellcheck disable=SC2086
    "$ANYWARP" run "$own"/$program >/dev/full 2>/dev/null &&
        failed "$program: a full disk is no error"
done

# The driver file: written, found by other programs, removed.
expect 0 '^anywarp is loaded$' "$own/ofedctrl" -q
expect 0 '^anywarp is already loaded$' "$own/ofedctrl" -l
expect 1 'IBV_CONFIG_DIR is not set' "$own/ofedctrl" -u
mkdir "$dir/drivers"
export IBV_CONFIG_DIR=$dir/drivers
expect 1 '^anywarp is not loaded$' "$own/ofedctrl" -q
expect 1 '^No IB devices found' "$own/ibv_devinfo"
expect 0 '^0 HCAs found:$' "$own/ibv_devinfo" -l
expect 0 '^anywarp is loaded$' "$own/ofedctrl" -k /usr/lib/drivers/ofed_core -l
[ "$(cat "$dir"/drivers/*.driver)" = 'driver anywarp' ] || failed "the driver file is another"
expect 0 '^anywarp is loaded$' "$own/ofedctrl" -q
expect 0 '^\tanywarp0$' "$own/ibv_devinfo" -l
echo 'driver anywarp' >"$dir/drivers/second.driver"
expect 1 'another \*.driver file' "$own/ofedctrl" -u
rm "$dir/drivers/second.driver"
expect 0 '^anywarp is not loaded$' "$own/ofedctrl" -u
expect 0 '^anywarp is not loaded$' "$own/ofedctrl" -u
[ -z "$(ls -A "$dir/drivers")" ] || failed "unloading leaves a file"
ln -s "$dir/target" "$dir/drivers/anywarp.driver"
expect 1 'anywarp.driver: Too many levels' "$own/ofedctrl" -l
IBV_CONFIG_DIR=$dir/none expect 1 'none/anywarp.driver: No such file' "$own/ofedctrl" -l
rm "$dir/drivers/anywarp.driver"
expect 1 'other: No such file' "$own/ofedctrl" -k other -l
expect 0 '^usage: ofedctrl' "$own/ofedctrl" -h
for arguments in '' '-l -u' '-l extra' -x -k; do
    # shellcheck disable=SC2086
    expect 2 '^usage: ofedctrl' "$own/ofedctrl" $arguments
done
unset IBV_CONFIG_DIR

# The launcher puts them behind the system's programs.
expect 0 '^anywarp is loaded$' ofedctrl -q
found=$(PATH=/none "$ANYWARP" run /bin/sh -c 'command -v ofedctrl; echo $PATH')
[ "$found" = "$own/ofedctrl"$'\n'"/none:$own" ] || failed "PATH: $found"
printf '#!/bin/sh\necho first\n' >"$dir/ibv_devinfo"
chmod +x "$dir/ibv_devinfo"
PATH=$dir:$PATH expect 0 '^first$' ibv_devinfo

# The stock programs say the same. Names of fields stand before a colon, or alone in their line.
fields()
{
    sed -nE 's/^(\t*)([^:]*):.*/\1\2/p; /:/!p'
}
# The stock one's, but for the fields that it has since rdma-core 65.
stock_devinfo()
{
    "$ANYWARP" run ibv_devinfo "$@" |
        sed -E '/^\t*(max_comp_cntr|comp_cntr_caps|effective_speed):/d; /^\t*QP_ATTACH_[A-Z_]*$/d'
}
if type -P ibv_devinfo ibv_devices >/dev/null; then
    for arguments in '' -v; do
        # shellcheck disable=SC2086
        diff <(stock_devinfo $arguments | fields) \
            <("$ANYWARP" run "$own/ibv_devinfo" $arguments | fields) ||
            failed "fields differ from those of the stock ibv_devinfo $arguments"
    done
    diff <(stock_devinfo -v | tr -d '\t') \
        <("$ANYWARP" run "$own/ibv_devinfo" -v | tr -d '\t') || failed "values differ"
    diff <("$ANYWARP" run ibv_devices) <("$ANYWARP" run "$own/ibv_devices") ||
        failed "ibv_devices differs from the stock one"
fi

finish

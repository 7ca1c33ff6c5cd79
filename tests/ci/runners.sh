#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The lines of doc/ci/README.md for pytest, ctest and gtest: tests that pass still pass, and check tells
# what their programs do wrong. One that is not installed is left out.

# shellcheck source=tests/apps/lib.sh
. "$SRCDIR/tests/apps/lib.sh"
need python3

mkdir "$dir/bin"
ln -s "$ANYWARP" "$dir/bin/anywarp"
PATH=$dir/bin:$PATH
right=$BUILDDIR/tests/check/right
wrong=$BUILDDIR/tests/check/wrong/cq_too_small
tried=0

# lines PATTERN: those of the page that match, one a line, without what begins them.
lines()
{
    sed -n "s|^    \(anywarp $1\)|\1|p" "$SRCDIR/doc/ci/README.md"
}

# as_told RUNNER: the lines of the page in this folder, where the tests are right, and then where they
# are wrong: "check" has 99, and names the finding; what chaos does hurts neither.
as_told()
{
    local line check chaos
    tried=$((tried + 1))
    check=$(lines "check .* $1")
    chaos=$(lines "chaos .* $1")
    [ -n "$check" ] && [ -n "$chaos" ] || failed "the page has no lines for $1"
    for line in "$check" "$chaos"; do
        KIND=right timeout -k 5 120 sh -c "$line" >"$dir/out" 2>"$dir/out.err" || failed "right: $line" out
    done
    grep -q 'failures="0"' check.xml || failed "right: $check" out
    KIND=wrong timeout -k 5 120 sh -c "$check" >"$dir/out" 2>"$dir/out.err"
    status=$?
    [ $status = 99 ] && grep -q 'name="[^"]*'"$2" check.xml || failed "wrong: $check: $status" out
}

if command -v pytest-3 >/dev/null; then
    mkdir "$dir/pytest"
    cd "$dir/pytest" || exit 99
    cat >test_programs.py <<EOF
import os, subprocess

PROGRAMS = {"right": "$right", "wrong": "$wrong"}

def test_program():
    assert subprocess.run([PROGRAMS[os.environ["KIND"]]]).returncode == 0
EOF
    as_told pytest-3 cq_too_small
fi

if command -v ctest >/dev/null && command -v cmake >/dev/null; then
    mkdir "$dir/ctest"
    cd "$dir/ctest" || exit 99
    cat >CMakeLists.txt <<EOF
cmake_minimum_required(VERSION 3.13)
project(programs NONE)
enable_testing()
add_test(NAME program COMMAND sh -c "case \$ENV{KIND} in right) exec $right ;; *) exec $wrong ;; esac")
add_test(NAME checked COMMAND anywarp check $right)
EOF
    sed -i 's/\$ENV{KIND}/$KIND/' CMakeLists.txt
    cmake . >"$dir/cmake" 2>"$dir/cmake.err" || failed cmake cmake
    as_told ctest cq_too_small
fi

cd "$dir" || exit 99
cat >gtests.cc <<'EOF'
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

TEST(Device, KeepsCqs)
{
    ibv_device **list = ibv_get_device_list(nullptr);
    ASSERT_TRUE(list && list[0]);
    ibv_context *context = ibv_open_device(list[0]);
    ASSERT_TRUE(context);
    ibv_cq *cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
    ASSERT_TRUE(cq);
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    if (!strcmp(getenv("KIND"), "wrong"))
        ibv_poll_cq(cq, 1, &wc);
    ibv_close_device(context);
    ibv_free_device_list(list);
}
EOF
if c++ -O0 -I"$SRCDIR/include" gtests.cc -L"$BUILDDIR/.libs" -Wl,--allow-shlib-undefined \
    -lgtest_main -lgtest -libverbs -lpthread -o gtests >"$dir/cc" 2>&1; then
    as_told ./gtests destroyed_object
fi

[ $tried != 0 ] || skip 'no pytest, ctest or gtest here'
finish

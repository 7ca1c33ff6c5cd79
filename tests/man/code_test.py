#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""That each SYNOPSIS of a function says what the headers say, and that each EXAMPLE compiles and,
if it is a program, runs."""
import os
import subprocess
import sys
import tempfile

from page import SRCDIR, pages

CC = os.environ.get("CC", "cc").split()
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{SRCDIR}/include"]
LIBRARIES = f"{os.environ['BUILDDIR']}/.libs"
# What an installed header of an earlier release lacks.
FLAGS += [*os.environ["LATER_CPPFLAGS"].split(), "-include", f"{SRCDIR}/src/iwarp/env/later.h"]
# A library built with a sanitizer leaves its symbols to what the launcher preloads.
LINK = [f"-L{LIBRARIES}", "-lrdmacm", "-libverbs", "-Wl,--allow-shlib-undefined"]

# The header has a macro of this name, for programs; the function behind it takes another struct.
BEHIND = {"ibv_query_port": "___ibv_query_port"}
failures = 0


def fail(text):
    global failures
    failures += 1
    print(f"FAILED: {text}")


def run(command, code=None):
    done = subprocess.run(command, input=code, text=True, capture_output=True, timeout=60)
    return None if done.returncode == 0 else f"{done.stdout}{done.stderr}" or "exit status"


def prototypes_check(page):
    """A program that compiles if the prototypes are the headers'; None if no header has them."""
    includes, prototypes = page.synopsis()
    if not includes:
        return None
    code = includes[:]
    for name, prototype in prototypes.items():
        code.append(prototype.replace(f"{name}(", f"page_{name}(", 1))
        code.append(f"_Static_assert(__builtin_types_compatible_p(__typeof__(page_{name}), "
                    f'__typeof__({BEHIND.get(name, name)})), "{name}");')
    return "\n".join(code) + "\n"


def check_synopsis(page):
    includes, prototypes = page.synopsis()
    if includes and sorted(prototypes) != sorted(page.names()):
        fail(f"{page.file}: NAME and SYNOPSIS differ: "
             f"{sorted(set(prototypes) ^ set(page.names()))}")
    code = prototypes_check(page)
    if code:
        errors = run([*CC, *FLAGS, "-fsyntax-only", "-x", "c", "-"], code)
        if errors:
            fail(f"{page.file}: SYNOPSIS: {errors}")


def check_example(page, folder):
    """@return whether it is a program"""
    examples = page.examples()
    if len(examples) != 1:
        fail(f"{page.file}: {len(examples)} examples")
        return False
    code = "\n".join(page.synopsis()[0]) + "\n" + examples[0]
    source, program = f"{folder}/example.c", f"{folder}/example"
    with open(source, "w", encoding="utf-8") as f:
        f.write(code)
    if "int main(" not in code:
        errors = run([*CC, *FLAGS, "-c", "-o", f"{folder}/example.o", source])
        if errors:
            fail(f"{page.file}: EXAMPLE: {errors}")
        return False
    errors = run([*CC, *FLAGS, "-o", program, source, *LINK]) or \
        run([os.environ["ANYWARP"], "run", program])
    if errors:
        fail(f"{page.file}: EXAMPLE: {errors}")
    return True


functions = pages("3")
programs = 0
with tempfile.TemporaryDirectory() as folder:
    for p in functions:
        check_synopsis(p)
        programs += check_example(p, folder)
print(f"{len(functions)} pages, {programs} programs")
sys.exit(failures > 0 or programs == 0)

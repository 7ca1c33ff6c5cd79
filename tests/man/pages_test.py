#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""That every function has a page, that pages have their sections, links and references that lead
somewhere, and that each error they tell of is one that a test provokes."""
import glob
import os
import re
import subprocess
import sys
import tempfile

from page import SRCDIR, pages

SECTIONS = {
    "1": ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLE", "SEE ALSO"],
    "3": ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "EXAMPLE", "SEE ALSO"],
    "7": ["NAME", "DESCRIPTION", "EXAMPLE", "SEE ALSO"],
}
failures = 0


def fail(text):
    global failures
    failures += 1
    print(f"FAILED: {text}")


def read(path):
    with open(os.path.join(SRCDIR, path), encoding="utf-8") as f:
        return f.read()


def exported():
    """The names in the maps, but for the node that our two libraries have between them, and those
    that providers ask for."""
    nodes = []
    for path in ("src/iwarp/verbs/libibverbs.map", "src/cma/librdmacm.map"):
        text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
        for node, body in re.findall(r"(\w+(?:\.\d+)?) \{(.*?)\}", text, flags=re.S):
            if node.startswith("IBVERBS_PRIVATE_"):
                nodes.append(node.rsplit("_", 1)[1])
            elif node != "ANYWARP_PRIVATE_1":
                yield from re.findall(r"^\s+(\w+);", body, flags=re.M)
    yield from re.findall(r"^(\w+)", read("src/iwarp/verbs/private.names"), flags=re.M)
    yield from (f"verbs_register_driver_{node}" for node in nodes)


def inlines():
    """Functions of our headers that programs call, exported or not."""
    for path in ("include/rdma/rdma_cma.h", "include/rdma/rdma_verbs.h"):
        for name in re.findall(r"^[a-z].*?\b(rdma_\w+)\(", read(path), flags=re.M):
            if not name.endswith("_"):
                yield name


def check_sections(page):
    wanted = SECTIONS[page.section]
    there = [s for s in page.sections if s in wanted]
    if there != wanted:
        fail(f"{page.file}: sections {', '.join(page.sections)}")
    empty = [s for s in there if not page.sections[s]]
    if empty:
        fail(f"{page.file}: nothing in {', '.join(empty)}")
    if page.name not in page.names():
        fail(f"{page.file}: NAME does not tell its name")


def check_errors(page):
    title = page.sections.get("ERRORS", [])
    errors = page.errors()
    if len(errors) != sum(line == ".TP" for line in title) or (not errors and title != ["None."]):
        fail(f"{page.file}: ERRORS is neither a list of errors nor \"None.\"")
    for error, tests in errors:
        provoked = False
        for test in tests:
            # FILE, or FILE:NAME where the test calls what is below the function.
            path, _, alias = test.partition(":")
            text = read(f"tests/{path}")
            names = [alias] if alias else page.names()
            calls = any(re.search(rf"\b{name}\b", text) for name in names)
            provoked |= calls and bool(re.search(rf"\b{error}\b", text))
        if not provoked:
            fail(f"{page.file}: {error}: no test provokes it ({' '.join(tests) or 'none named'})")


def check_variables():
    """Every variable of the environment that the sources name is in anywarp(7)."""
    page = read("man/anywarp.7")
    for path in glob.glob(f"{SRCDIR}/src/**/*.c", recursive=True):
        for name in re.findall(r'"(ANYWARP_[A-Z_]+[A-Z])"', read(path)):
            if not re.search(rf"\b{name}\b", page):
                fail(f"anywarp.7 does not tell of {name}")


def check_layout(functions):
    """The tree as it is installed. Returns the files in it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sh", f"{SRCDIR}/man/lay", f"{folder}/man3", *(p.path for p in functions)],
                       check=True)
        files = sorted(os.listdir(f"{folder}/man3"))
        for file in files:
            with open(f"{folder}/man3/{file}", encoding="utf-8") as f:
                line = f.readline()
            if line.startswith(".so ") and not os.path.exists(f"{folder}/{line[4:].strip()}"):
                fail(f"{file} leads to {line[4:]}")
        return files


functions = pages("3")
everything = pages("1") + functions + pages("7")
listed = read("man/Makefile.inc")
owner = {}
for p in everything:
    check_sections(p)
for p in functions:
    check_errors(p)
    for n in p.names():
        if n in owner:
            fail(f"{n} has two pages, {owner[n]} and {p.file}")
        owner[n] = p.file
    if f"man/{p.file}" not in listed:
        fail(f"{p.file} is not listed in man/Makefile.inc")

check_variables()
installed = check_layout(functions)
count = 0
for n in {*exported(), *inlines()}:
    count += 1
    if f"{n}.3" not in installed:
        fail(f"{n} has no page")
for p in everything:
    for reference in p.references():
        n, s = reference[:-1].split("(")
        ours = re.match(r"(ibv|rdma|anywarp)", n) and s in "37"
        if ours and f"{n}.{s}" not in installed and not any(n == q.name for q in everything):
            fail(f"{p.file} refers to {reference}")

print(f"{len(everything)} pages, {len(installed)} installed for {count} functions")
sys.exit(failures > 0 or count < 200)

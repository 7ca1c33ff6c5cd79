#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What pages of section 7 and the limits in README promise is held by tests, which comments of theirs
name: "test: FOLDER/FILE:CASE ...", of a program with cases each by its name, or "no test: REASON".
Those that are named exist and run; in the pages that are complete each paragraph names one."""
import re
import sys

from page import SRCDIR, pages

COMPLETE = {
    "anywarp": ["FEATURES", "LIMITS", "DIFFERENCES FROM ADAPTERS", "DIFFERENCES FROM SOFT-IWARP",
                "ENVIRONMENT", "DIAGNOSTICS"],
    "anywarp-aix": ["DESCRIPTION", "WHAT STAYS DIFFERENT"],
    "anywarp-examples": ["DESCRIPTION", "EXIT STATUS"],
    "anywarp-interop": ["DESCRIPTION"],
    "anywarp-security": ["DESCRIPTION"],
    "kverbs": ["DESCRIPTION", "WHAT IS REFUSED", "NOTES"],
}
failures = 0


def fail(text):
    global failures
    failures += 1
    print(f"FAILED: {text}")


def read(path):
    try:
        with open(f"{SRCDIR}/{path}", encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return None


def cases(source):
    """The test functions that main() lists."""
    listed = re.findall(r"CMUnitTest \w+\[\] = \{(.*?)\};", source, flags=re.S)
    return re.findall(r"\((\w+)", "".join(listed))


def check_name(file, name, makefile):
    path, _, case = name.partition(":")
    source = read(f"tests/{path}")
    program = re.sub(r"\.c$", "", f"tests/{path}")
    if source is None or not re.search(rf"{re.escape(program)}\s", makefile):
        fail(f"{file} names {path}, which is no test")
        return
    known = cases(source)
    if known and case not in known:
        fail(f"{file} names {name}: {path} has no such case")
    if case and not known:
        fail(f"{file} names {name}: {path} has no cases")


def paragraphs(lines):
    """Those with text of their own, as lists of lines; examples are not theirs."""
    found, example = [[]], False
    for line in lines:
        if line in (".EX", ".EE"):
            example = line == ".EX"
        elif line in (".PP", ".TP") or line.startswith((".IP", ".SS")):
            found.append([])
        elif not example:
            found[-1].append(line)
    return [p for p in found if any(not line.startswith('.\\"') for line in p)]


named = 0
makefile_text = read("tests/Makefile.inc")
seven = pages("7")
for p in seven:
    for title, lines in p.sections.items():
        for line in lines:
            comment = re.fullmatch(r'\.\\" (no )?test: (.+)', line)
            if comment and not comment.group(1):
                for n in comment.group(2).split():
                    named += 1
                    check_name(p.file, n, makefile_text)
            elif line.startswith('.\\"') and not comment:
                fail(f"{p.file}: neither a test nor why there is none: {line}")
        if title in COMPLETE.get(p.name, []):
            for paragraph in paragraphs(lines):
                if not any(line.startswith('.\\"') for line in paragraph):
                    fail(f"{p.file}: {title}: nothing holds: {' '.join(paragraph)[:60]}...")

limits = read("README.md").split("\n## Limits\n\n")[1].split("\n\n## ")[0]
for item in re.split(r"\n(?=- )", limits):
    comment = re.search(r"<!-- (no )?test: (.+?) -->$", item, flags=re.S)
    if not comment:
        fail(f"README.md: nothing holds: {item[:60]}...")
    elif not comment.group(1):
        for n in comment.group(2).split():
            named += 1
            check_name("README.md", n, makefile_text)

for n, titles in COMPLETE.items():
    there = [t for p in seven if p.name == n for t in p.sections]
    for t in titles:
        if t not in there:
            fail(f"there is no section {t} of {n}")
print(f"{named} tests are named")
sys.exit(failures > 0 or named < 100)

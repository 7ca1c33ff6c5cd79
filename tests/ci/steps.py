#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""steps.py FILE: the commands of a CI configuration of doc/ci that need neither root nor network,
as one shell script: every "run: |" of GitHub Actions but that of the step "Packages", each in a
shell of its own; the "script:" of GitLab."""
import re
import sys
import textwrap


def indented_below(lines, start):
    """The lines after @p start that are indented more than it."""
    indent = len(lines[start]) - len(lines[start].lstrip(" -"))
    found = []
    for line in lines[start + 1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        found.append(line)
    return textwrap.dedent("\n".join(found)).strip() + "\n"


def github_steps(lines):
    name = None
    for number, line in enumerate(lines):
        if match := re.match(r" *- (?:name: (.*))?", line):
            name = match[1]
        if re.match(r" *run: \|$", line) and name != "Packages":
            yield f"(set -e\n{indented_below(lines, number)})\n"


def gitlab_steps(lines):
    script = indented_below(lines, lines.index("  script:"))
    for item in re.split(r"^- ", script, flags=re.MULTILINE)[1:]:
        yield textwrap.dedent(item[2:]) if item.startswith("|\n") else item


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().splitlines()
    steps = list((gitlab_steps if "  script:" in lines else github_steps)(lines))
    print("set -ex\n" + "".join(steps), end="")


main()

# SPDX-License-Identifier: BSD-2-Clause
"""The pages of man/, read as the tests need them: man(7) in the few macros that they use."""
import glob
import os
import re
import shlex

SRCDIR = os.environ["SRCDIR"]


def _plain(line):
    """A line without fonts and escapes."""
    if line.startswith("."):
        macro, _, rest = line.partition(" ")
        if macro == ".B" and not rest.startswith('"'):
            line = rest
        elif macro in (".B", ".I", ".BR", ".RB", ".IR", ".RI", ".SH", ".SS"):
            joint = " " if macro in (".B", ".I", ".SH", ".SS") else ""
            lexer = shlex.shlex(rest, posix=False)
            lexer.whitespace_split, lexer.commenters, lexer.quotes = True, "", '"'
            line = joint.join(word.strip('"') for word in lexer)
        else:
            return ""
    for escape, char in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^"),
                         (r"\(ti", "~"), (r"\(dq", '"'), (r"\&", ""), (r"\e", "\\")):
        line = line.replace(escape, char)
    return line


class Page:
    def __init__(self, path):
        self.path = path
        self.file = os.path.basename(path)
        self.name, self.section = self.file.rsplit(".", 1)
        self.sections = {}  # title: raw lines
        with open(path, encoding="utf-8") as f:
            lines = None
            for line in f.read().splitlines():
                if line.startswith(".SH "):
                    lines = self.sections.setdefault(_plain(line), [])
                elif lines is not None:
                    lines.append(line)

    def names(self):
        """What the NAME section lists."""
        text = " ".join(self.sections.get("NAME", []))
        return [n.replace("\\-", "-") for n in re.split(r"[,\s]+", text.split(" \\- ")[0]) if n]

    def _literal(self, title, begin, end):
        blocks, block = [], None
        for line in self.sections.get(title, []):
            if line == begin:
                block = []
            elif line == end:
                blocks.append("\n".join(block) + "\n")
                block = None
            elif block is not None:
                block.append(_plain(line))
        return blocks

    def synopsis(self):
        """Its include lines, and a dictionary of its prototypes by name."""
        code = "\n".join(self._literal("SYNOPSIS", ".nf", ".fi"))
        includes = re.findall(r"^#include .*$", code, re.M)
        prototypes = {}
        for text in re.sub(r"^#.*$", "", code, flags=re.M).split(";"):
            found = re.search(r"(\w+)\(", text)
            if found:
                prototypes[found.group(1)] = " ".join(text.split()) + ";"
        return includes, prototypes

    def examples(self):
        return self._literal("EXAMPLE", ".EX", ".EE")

    def errors(self):
        """The errors of the ERRORS section, each with the words of its test comment."""
        found, lines = [], self.sections.get("ERRORS", [])
        for at, line in enumerate(lines[:-1]):
            if re.fullmatch(r"\.B E[A-Z0-9]+", line) and lines[at - 1] == ".TP":
                comment = re.fullmatch(r'\.\\" test: (.*)', lines[at + 1])
                found.append((line[3:], comment.group(1).split() if comment else []))
        return found

    def references(self):
        """Of the SEE ALSO section: "name(section)"."""
        text = " ".join(map(_plain, self.sections.get("SEE ALSO", [])))
        return re.findall(r"[\w.-]+\(\d\)", text)


def pages(section):
    found = [Page(p) for p in sorted(glob.glob(f"{SRCDIR}/man/*.{section}"))]
    if not found:
        raise SystemExit(f"there are no pages in section {section}")
    return found

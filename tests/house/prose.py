#!/usr/bin/env python3
"""Checks how comments begin, how wide pages are, and that the files which pages name exist.

A comment is a sentence, or the noun of what it documents: it does not begin with a word that leans on a sentence that is
not there. Lines of pages have at most 120 characters.

usage: prose.py ROOT
"""
import pathlib
import re
import sys

from source_files import FOLDERS, source_files

DANGLING = re.compile(r"(Of|What|Where|The same|Whether|Who|Whose|Likewise)\b")
COMMENT = re.compile(r"^\s*//[/!]?<?\s*(.*)$")
TRAILING = re.compile(r"[^:]//[/!]<?\s*(.*)$")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
WIDTH = 120
NAMED_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:h|cpp|cu|cuh|py|md|build))`")
# Pages that programs write.
GENERATED = ("docs/fidelity.md", "docs/emulated.md", "docs/validation.md")


def openings(lines):
    """(line number, first words) of each comment; lines of one comment count once."""
    inside = False
    for number, line in enumerate(lines, 1):
        alone = COMMENT.match(line)
        match = alone or TRAILING.search(line)
        if match and not (alone and inside):
            yield number, match.group(1)
        inside = bool(alone and alone.group(1))


def faults(root):
    for name in source_files(root, SOURCES, (*FOLDERS, "tests")):
        lines = (root / name).read_text().splitlines()
        for number, text in openings(lines):
            if DANGLING.match(text):
                yield f"{name}:{number}: the comment begins with \"{text[:40]}\": say it as a sentence"
    for path in sorted(root.rglob("*.md")):
        name = str(path.relative_to(root))
        if name in GENERATED or name.startswith(("build", ".")):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > WIDTH:
                yield f"{name}:{number}: {len(line)} characters, at most {WIDTH}: wrap it, or shorten the table's cells"
            for named in NAMED_FILE.findall(line):
                if "NAME" not in named and not (root / named).exists() and not (path.parent / named).exists():
                    yield f"{name}:{number}: {named} does not exist: name it from the root or from this folder"


def main():
    found = list(faults(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "comments and pages keep the rules of prose")
    sys.exit(1 if found else 0)


main()

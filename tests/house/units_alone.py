#!/usr/bin/env python3
"""Compiles units by themselves, without writing objects. The builds join units, so that one could depend on an include
of its neighbour.

It compiles the units that the latest commits changed, or every unit and the tests' with --all. With --seconds N it
begins no more after so long and says so. The newest changes are compiled first.

usage: units_alone.py ROOT BUILD_FOLDER [--all | --seconds N]
BUILD_FOLDER is configured with -Dunity=off; it need not be built.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from in_time import checked_in_time, seconds_allowed, told
from source_files import FOLDERS, NEEDS_CUDA, changed_files, source_files


def check(entry):
    words = shlex.split(entry["command"])
    words = [word for word in words if not re.match(r"-O\d|-g|-MD", word) and word != "ccache"]
    for option in ("-o", "-MQ", "-MF"):
        if option in words:
            del words[words.index(option):words.index(option) + 2]
    return subprocess.run([*words, "-fsyntax-only", "-Werror"], cwd=entry["directory"], capture_output=True, text=True)


def main():
    root, build = sys.argv[1:3]
    if "--all" in sys.argv:
        wanted = source_files(root, [".cpp"], [*FOLDERS, "tests"])
    else:
        wanted = changed_files(root, [".cpp"])
    commands = {}
    for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
        path = os.path.relpath(pathlib.Path(entry["directory"], entry["file"]).resolve(), pathlib.Path(root).resolve())
        commands[path] = entry
    units = [path for path in wanted if path in commands and not path.startswith(NEEDS_CUDA)]
    failed = left = 0
    for unit, result in checked_in_time(lambda unit: check(commands[unit]), units, seconds_allowed()):
        if result is None:
            left += 1
        elif result.returncode != 0:
            failed += 1
            print(f"{unit} does not compile alone:\n{result.stderr}")
    print(f"{len(units) - left} units, {failed} of which do not compile alone" + told(left))
    sys.exit(1 if failed else 0)


main()

#!/usr/bin/env python3
"""Compiles units by themselves, without writing objects: the builds join them, so that one could lean on what its
neighbour includes. Those that the latest commits changed, or with --all every one.

usage: units_alone.py ROOT BUILD_FOLDER [--all]   (BUILD_FOLDER: configured with -Dunity=off; it need not be built)
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from source_files import FOLDERS, NEEDS_CUDA, changed_files, source_files


def check(command, folder):
    words = shlex.split(command)
    words = [word for word in words if not re.match(r"-O\d|-g|-MD", word) and word != "ccache"]
    for option in ("-o", "-MQ", "-MF"):
        if option in words:
            del words[words.index(option):words.index(option) + 2]
    return subprocess.run([*words, "-fsyntax-only", "-Werror"], cwd=folder, capture_output=True, text=True)


def main():
    root, build = sys.argv[1:3]
    folders = [*FOLDERS, "tests"]
    wanted = (source_files if "--all" in sys.argv else changed_files)(root, [".cpp"], folders)
    commands = {}
    for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
        path = os.path.relpath(pathlib.Path(entry["directory"], entry["file"]).resolve(), pathlib.Path(root).resolve())
        commands[path] = entry
    units = [path for path in wanted if path in commands and not path.startswith(NEEDS_CUDA)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        checks = pool.map(lambda unit: check(commands[unit]["command"], commands[unit]["directory"]), units)
        for unit, result in zip(units, checks):
            if result.returncode != 0:
                failed += 1
                print(f"{unit} does not compile alone:\n{result.stderr}")
    print(f"{len(units)} units, {failed} of which do not compile alone")
    sys.exit(1 if failed else 0)


main()

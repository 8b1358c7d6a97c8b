#!/usr/bin/env python3
"""Checks that includes between folders follow the arrows of the house, and that no folder is reached round its way in.

usage: include_direction.py ROOT
"""
import pathlib
import re
import sys

# folder -> what it may include besides itself; "folder/file.h" stands for that file alone.
ALLOWED = {
    "schedules": [],
    "traces": ["schedules"],
    "simulator": ["schedules", "traces"],
    "kernels": [],
    "planner": ["schedules", "traces", "simulator", "kernels/layer/layer.h"],
    "executor": ["schedules", "traces", "kernels"],
    "tools": ["schedules", "traces", "simulator", "kernels", "planner", "executor"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def violations(root):
    for folder, allowed in ALLOWED.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(1)
                place = f"{path.relative_to(root)}:{number}"
                if not (root / target).is_file():
                    yield f"{place}: \"{target}\" is not written from the repository root"
                elif target.split("/")[0] != folder and target.split("/")[0] not in allowed and target not in allowed:
                    yield f"{place}: {folder} may not include \"{target}\""


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(violations(root))
    print("\n".join(found) or "every include follows the arrows")
    sys.exit(1 if found else 0)


main()

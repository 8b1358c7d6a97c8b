#!/usr/bin/env python3
"""Checks that tests mirror the tree: tests/PATH_test.cpp tests PATH, and a test of several sources together stands in a
folder named whole.

usage: mirror.py ROOT
"""
import pathlib
import sys

FOLDERS = ("schedules", "traces", "simulator", "kernels", "planner", "executor", "tools")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
END = "_test.cpp"


def has_source(stem):
    return any(stem.with_name(stem.name + ending).is_file() for ending in SOURCES)


def strays(root):
    """Tests without a source of their place and name, in the tree or (helpers of tests) beside the test itself."""
    for folder in FOLDERS:
        for test in sorted((root / "tests" / folder).rglob("*" + END)):
            path = test.relative_to(root / "tests")
            stem = path.with_name(path.name[: -len(END)])
            if "whole" not in path.parts[:-1] and not has_source(root / stem) and not has_source(root / "tests" / stem):
                yield f"tests/{path}: there is no {stem}.h or .cpp; a test of several sources stands in whole/"


def main():
    found = list(strays(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "every test mirrors its source")
    sys.exit(1 if found else 0)


main()

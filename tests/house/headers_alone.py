#!/usr/bin/env python3
"""Compiles headers by themselves, so that each includes what it needs.

It compiles the headers that the latest commits changed, or every header with --all. With --seconds N it begins no more
after so long and says so. The newest changes are compiled first.

usage: headers_alone.py ROOT [--all | --seconds N] COMPILER...
"""
import subprocess
import sys

from in_time import checked_in_time, seconds_allowed, told
from source_files import NEEDS_CUDA, changed_files, source_files


def compile_alone(root, compiler, header):
    command = [*compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-I", root, "-x", "c++",
               "-include", f"{root}/{header}", "/dev/null"]
    return subprocess.run(command, capture_output=True, text=True)


def main():
    root, compiler = sys.argv[1], sys.argv[2:]
    if compiler[0] == "--all":
        compiler, headers = compiler[1:], source_files(root, [".h"])
    else:
        compiler, headers = compiler[2:] if compiler[0] == "--seconds" else compiler, changed_files(root, [".h"])
    headers = [header for header in headers if not header.startswith(NEEDS_CUDA)]
    failed = left = 0
    for header, result in checked_in_time(lambda header: compile_alone(root, compiler, header), headers, seconds_allowed()):
        if result is None:
            left += 1
        elif result.returncode != 0 or result.stderr:
            failed += 1
            print(f"{header} does not compile alone:\n{result.stderr}")
    print(f"{len(headers) - left} headers, {failed} of which do not compile alone" + told(left))
    sys.exit(1 if failed else 0)


main()

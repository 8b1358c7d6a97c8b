#!/usr/bin/env python3
"""Compiles headers by themselves, so that each includes what it needs: those that the latest commits changed, or with
--all every one.

usage: headers_alone.py ROOT [--all] COMPILER...
"""
import concurrent.futures
import os
import subprocess
import sys

from source_files import NEEDS_CUDA, changed_files, source_files


def compile_alone(root, compiler, header):
    command = [*compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-I", root, "-x", "c++",
               "-include", f"{root}/{header}", "/dev/null"]
    return header, subprocess.run(command, capture_output=True, text=True)


def main():
    root, compiler = sys.argv[1], sys.argv[2:]
    every = compiler[0] == "--all"
    headers = source_files(root, [".h"]) if every else changed_files(root, [".h"])
    headers = [header for header in headers if not header.startswith(NEEDS_CUDA)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, result in pool.map(lambda h: compile_alone(root, compiler[every:], h), headers):
            if result.returncode != 0 or result.stderr:
                failed += 1
                print(f"{header} does not compile alone:\n{result.stderr}")
    print(f"{len(headers)} headers, {failed} of which do not compile alone")
    sys.exit(1 if failed else 0)


main()

#!/usr/bin/env python3
"""Compiles every header by itself, so that each includes what it needs.

usage: headers_alone.py ROOT COMPILER...
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

NEEDS_CUDA = "executor/cuda"  # compiled with the toolkit only
FOLDERS = ["schedules", "traces", "simulator", "kernels", "planner", "executor", "tools"]


def compile_alone(root, compiler, header):
    command = [*compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-I", str(root), "-x", "c++",
               "-include", str(header), "/dev/null"]
    return header, subprocess.run(command, capture_output=True, text=True)


def main():
    root = pathlib.Path(sys.argv[1])
    headers = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.h")) if root / NEEDS_CUDA not in path.parents]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, result in pool.map(lambda h: compile_alone(root, sys.argv[2:], h), headers):
            if result.returncode != 0 or result.stderr:
                failed += 1
                print(f"{header.relative_to(root)} does not compile alone:\n{result.stderr}")
    print(f"{len(headers)} headers, {failed} of which do not compile alone")
    sys.exit(1 if failed or not headers else 0)


main()

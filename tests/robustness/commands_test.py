#!/usr/bin/env python3
"""Runs every command of the table and checks its answer.

usage: commands_test.py PLUMB [--only WORD]
"""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile

from commands import CASES
from tool import FOREIGN, Tool

WORKERS = 2


def faults_of(case, tool):
    with tempfile.TemporaryDirectory(prefix="plumb-robust-") as folder:
        for name, text in case.files.items():
            (pathlib.Path(folder) / name).write_text(text)
        code, stdout, stderr = tool.answer(case.command, folder, case.seconds)
    said = stdout + stderr
    faults = []
    if code != case.code:
        faults.append(f"took longer than {case.seconds} s" if code is None else f"exit code {code}, not {case.code}")
    faults += [f'does not say "{words}"' for words in case.says if words not in said]
    faults += [f'says "{words}"' for words in case.never if words in said]
    foreign = FOREIGN.search(said)
    if foreign:
        faults.append(f'says "{foreign.group()}"')
    return faults, said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb")
    parser.add_argument("--only", default="", help="commands with this word")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in case.command]
    tool = Tool(arguments.plumb)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for case, (faults, said) in zip(cases, pool.map(lambda case: faults_of(case, tool), cases)):
            if not faults:
                continue
            failed += 1
            print(f"{case.command[:200]}\n  {'; '.join(faults)}\n  it says: {said[-500:]}", flush=True)
    print(f"[cases] {len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

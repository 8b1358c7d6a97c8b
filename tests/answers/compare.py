#!/usr/bin/env python3
"""Asks two builds of plumb the same questions (commands.txt) and compares every byte of their answers: stdout, stderr,
exit code and the files that they write. It serves changes of structure, which may change no answer.

usage: compare.py PLUMB_BEFORE PLUMB_AFTER [SHARED]
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile

COMMANDS = pathlib.Path(__file__).with_name("commands.txt")


def questions(shared):
    for line in COMMANDS.read_text().splitlines():
        if line and not line.startswith("#") and (shared or "$SHARED" not in line):
            yield line.replace("$SHARED", str(shared))


def answers(plumb, commands):
    """Returns [(command, stdout, stderr, exit code)], and the bytes of each file that was written."""
    with tempfile.TemporaryDirectory() as folder:
        given = []
        for command in commands:
            done = subprocess.run([plumb, *shlex.split(command)], cwd=folder, capture_output=True, timeout=600)
            given.append((command, done.stdout, done.stderr, done.returncode))
        return given, {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}


def main():
    before, after = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    shared = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
    commands = list(questions(shared))
    (old, old_files), (new, new_files) = answers(before, commands), answers(after, commands)
    differing = 0
    for (command, *was), (_, *is_now) in zip(old, new):
        for name, a, b in zip(("stdout", "stderr", "exit code"), was, is_now):
            if a != b:
                differing += 1
                print(f"plumb {command}\n  its {name} differs")
    for name in sorted(old_files.keys() | new_files.keys()):
        if old_files.get(name) != new_files.get(name):
            differing += 1
            print(f"{name}\n  the file differs")
    codes = sorted({code for *_, code in old})
    print(f"{len(commands)} commands (exit codes {codes}), {len(old_files)} files: {differing} differences")
    sys.exit(1 if differing else 0)


main()

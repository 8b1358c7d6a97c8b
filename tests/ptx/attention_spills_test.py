#!/usr/bin/env python3
"""Checks that no attention kernel on tensor cores spills registers. Dropout may spill a few.

usage: attention_spills_test.py [PTXAS CAPABILITY PTX]      e.g. ptxas 90 kernels.ptx

Exit 77: there is nothing to check, since the build made no PTX.
"""
import re
import subprocess
import sys
import tempfile

KERNEL = re.compile(r"WarpAttention(\w+?)I\w*Li(\d+)ELi(\d+)ELN?\w*?6ScoresE([012])E")
SCORES = ["", " with dropout", " with bounded scores"]
CHANNELS = {(64, 64), (128, 128), (192, 128), (256, 256)}  # of queries and keys, and of values
CHECKED = ["90"]  # compute capabilities that the tiles were chosen for
MOST_WITH_DROPOUT = 48  # bytes that a thread stores and loads for want of registers
FUNCTION = re.compile(r"Compiling entry function '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def attention_module(text):
    """The module with the attention kernels alone, which ptxas compiles in seconds."""
    parts = re.split(r"(?m)^(?=\.visible \.entry )", text)
    shared = re.findall(r"(?m)^\.extern \.shared .*;$", text)
    head = [line for line in parts[0].splitlines() if not line.startswith(".extern")]
    kept = [part for part in parts[1:] if KERNEL.search(part.split("(", 1)[0])]
    # A declaration behind an entry belongs to all.
    kept = [re.sub(r"(?m)^\.extern \.shared .*;$", "", part) for part in kept]
    return "\n".join([*head, *shared, *kept])


def spills(log):
    """Yields (body, channels, what is done with scores, bytes) of each kernel in the log of ptxas -v."""
    name = None
    for line in log.splitlines():
        if match := FUNCTION.search(line):
            name = KERNEL.search(match.group(1))
        elif match := SPILLS.search(line):
            channels = int(name.group(2)), int(name.group(3))
            yield name.group(1), channels, SCORES[int(name.group(4))], int(match.group(1)) + int(match.group(2))


def main():
    if len(sys.argv) != 4:
        print("skipped: the build made no PTX of the kernels (it has no nvcc, or sanitizers)")
        sys.exit(77)
    ptxas, capability, path = sys.argv[1:]
    if capability not in CHECKED:
        print(f"skipped: the tiles of attention were not chosen for compute capability {capability}")
        sys.exit(77)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as module, open(path, encoding="utf-8") as text:
        module.write(attention_module(text.read()))
        module.flush()
        done = subprocess.run([ptxas, "-v", f"-arch=sm_{capability}", module.name, "-o", "/dev/null"], capture_output=True,
                              text=True)
    log = done.stdout + done.stderr
    if done.returncode != 0:
        print(log)
        sys.exit(1)
    found, failed = list(spills(log)), 0
    for body, channels, scores, count in found:
        if count > (MOST_WITH_DROPOUT if scores == SCORES[1] else 0):
            failed += 1
            print(f"WarpAttention{body} for {channels} channels{scores} spills {count} bytes")
    missing = {(channels, scores) for channels in CHANNELS for scores in SCORES} - {kernel[1:3] for kernel in found}
    for channels, scores in sorted(missing):
        print(f"there is no attention kernel for {channels} channels{scores} in the PTX")
    print(f"[cases] {len(found) - failed} passed, {failed + len(missing)} failed")
    sys.exit(1 if failed or missing else 0)


main()

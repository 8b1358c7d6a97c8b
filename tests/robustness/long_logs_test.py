#!/usr/bin/env python3
"""Feeds `plumb compare` logs and traces through a pipe, short ones and ten times longer ones, and holds their peak memory
against each other: it must not grow with a log, and by 16 bytes a kernel with a trace.

usage: long_logs_test.py PLUMB [--mebibytes N]
"""
import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

STEP = (" iteration {i:8d}/ 1000000 | consumed samples: {i:12d} | elapsed time per iteration (ms): {ms}.5 | "
        "global batch size:   128 | lm loss: 2.1 |\n")
TIMERS = ("(min, max) time across ranks (ms):\n    forward-compute ................................: ({ms}.10, {ms}.20)\n"
          "    optimizer ......................................: (10.00, 11.00)\n")
KERNEL = ('{{"ph": "X", "cat": "kernel", "name": "some_gemm", "pid": 0, "tid": 7, "ts": {us}, "dur": 80.5, "args": {{"External id": '
          '{i}, "device": 0, "stream": 7, "correlation": {i}, "grid": [32, 4, 1], "block": [384, 1, 1]}}}},\n')


def log_of_steps():
    for i in itertools.count(1):
        yield STEP.format(i=i, ms=6000 + i % 700)
        if i % 4 == 0:
            yield TIMERS.format(ms=2000 + i % 100)


def log_of_many_timers():
    yield "(min, max) time across ranks (ms):\n"
    for i in itertools.count():
        yield f"    timer-{i} ....: (1.00, 2.00)\n"


def settings_without_an_end():
    yield "------------------------ arguments ------------------------\n"
    for i in itertools.count():
        yield f"  setting_{i} ....................... {i}\n"


def one_line():
    return itertools.repeat("iteration without an end ")


def numbers():
    yield "[{}"
    yield from itertools.repeat(", 17")


def strange_object():
    yield '{"rows": [{"a": 1}'
    yield from itertools.repeat(', [{"a": [1, 2, 3]}, 4]')


def profile():
    yield '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 100000000},\n'
    for i in itertools.count():
        yield KERNEL.format(i=i, us=82 * i)


# Name, pieces, the end of a whole file, exit code, words of the answer, and bytes by which memory may grow with a byte.
CASES = [
    ("a log of steps and timers", log_of_steps, "", 0, "steps of Megatron-LM", 0),
    ("a log that is cut in a step", log_of_steps, " iteration 7/ 9 | consumed samples: 12 | elapsed ti", 1, "was cut", 0),
    ("a log of many timers", log_of_many_timers, "", 1, "the log has no step", 0),
    ("settings without an end", settings_without_an_end, "", 1, "the log has no step", 0),
    ("a line without an end", one_line, "", 1, "the log has no step", 0),
    ("a list of numbers", numbers, "]", 1, "no steps", 0),
    ("a JSON object of another program", strange_object, "]}", 1, "no steps", 0),
    ("a profile", profile, '{"ph": "i"}]}', 0, "PyTorch's profiler", 16 / len(KERNEL)),
    ("a profile that is cut", profile, '{"ph": ', 1, "no whole trace", 16 / len(KERNEL)),
]
SLACK = 8 << 20  # blocks, samples at their bound, and what the allocator keeps


def blocks(pieces, end, size):
    """Yields text of about `size` bytes, in blocks."""
    sent = 0
    for part in pieces:
        block = [part]
        held = len(part)
        for piece in pieces:
            block.append(piece)
            held += len(piece)
            if held > 1 << 18:
                break
        sent += held
        yield "".join(block).encode()
        if sent >= size:
            break
    yield end.encode()


def answer_of(plumb, plan, case, size):
    """Returns (exit code, what was said, peak bytes)."""
    _, pieces, end, _, _, _ = case
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([plumb, "compare", plan, "/dev/stdin"], stdin=subprocess.PIPE, stdout=said, stderr=said)
        try:
            for block in blocks(iter(pieces()), end, size):
                process.stdin.write(block)
            process.stdin.close()
        except BrokenPipeError:  # it has refused what it saw
            pass
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return process.returncode, said.read().decode(), used.ru_maxrss * 1024


def faults_of(plumb, plan, case, size):
    name, _, _, code, says, growth = case
    faults, peaks = [], []
    for length in (size // 10, size):
        exit_code, said, peak = answer_of(plumb, plan, case, length)
        peaks.append(peak)
        if exit_code != code or says not in said:
            faults.append(f"{name} of {length >> 20} MiB: exit code {exit_code}, not {code} with \"{says}\": {said[-400:]}")
    print(f"{name}: {peaks[0] / 2**20:.1f} MiB, and {peaks[1] / 2**20:.1f} MiB of ten times the length", flush=True)
    allowed = SLACK + 2 * growth * size  # a vector that grows holds both its places
    if peaks[1] - peaks[0] > allowed:
        faults.append(f"{name}: ten times the length takes {(peaks[1] - peaks[0]) >> 20} MiB more, and {int(allowed) >> 20} are allowed")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb")
    parser.add_argument("--mebibytes", type=int, default=100, help="length of the long ones")
    arguments = parser.parse_args()
    plumb = str(pathlib.Path(arguments.plumb).resolve())
    failed = 0
    with tempfile.TemporaryDirectory(prefix="plumb-long-") as folder:
        plan = str(pathlib.Path(folder) / "plan.json")
        subprocess.run([plumb, "plan", "llama-3-8b", "h100:16", "--global-batch", "128", "--stack", "megatron-core", "--layout",
                        "tp=2,pp=2,mbs=1,zero=1,sp=1,v=1,schedule=1f1b", "-o", plan], check=True, capture_output=True)
        for case in CASES:
            faults = faults_of(plumb, plan, case, arguments.mebibytes << 20)
            failed += 1 if faults else 0
            print("".join(f"  {fault}\n" for fault in faults), end="", flush=True)
    print(f"[cases] {len(CASES) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The cuda backend as the tool runs it, beside the cpu's: gpu_test.py PLUMB [libplumb_cuda.so [--quick]]

--quick takes one schedule on two stages, with and without a graph, and a calibration of a second.

Without the library, or without a GPU, the refusal is looked at (exit 1, one sentence) and the rest is skipped (77)."""

import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

QUICK = sys.argv[-1] == "--quick"
if QUICK:
    sys.argv.pop()
SCHEDULES = ["1f1b"] if QUICK else ["gpipe", "1f1b", "zb-h1", "pipedream"]
# How ranks share the GPU, by the number of stages.
SHARINGS = {2: [[], ["--sms", "all"], ["--cuda-graph"], ["--sms", "all", "--cuda-graph"]], 4: [[], ["--cuda-graph"]]}
if QUICK:
    SHARINGS = {2: [[], ["--cuda-graph"]]}
STEPS = "2" if QUICK else "5"


LIMIT_S = 60  # of one command


class Fault(Exception):
    pass


def call(*arguments):
    try:
        return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise Fault(f"{' '.join(map(str, arguments[1:]))} was ended after {LIMIT_S} s") from late


def losses(plumb, plan, schedule, backend, *options):
    result = call(plumb, "run", plan, "--backend", backend, "--schedule", schedule, "--steps", STEPS, "--json", *options)
    if result.returncode != 0:
        raise Fault(f"exit {result.returncode} on {backend}: {result.stderr.strip()}")
    return json.loads(result.stdout)["losses"]


def compare(reference, ours):
    """Returns the largest relative difference of two lists of losses."""
    worst = max(abs(a / b - 1) for a, b in zip(ours, reference, strict=True))
    if not worst <= 1e-4:  # a loss that is no number differs, too
        raise Fault(f"losses of the GPU {ours}, of the cpu {reference}")
    return worst


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plumb = pathlib.Path(sys.argv[1]).resolve()
        if len(sys.argv) == 2 or pathlib.Path(sys.argv[2]).resolve().parent != plumb.parent:
            plumb = pathlib.Path(shutil.copy(plumb, folder / "plumb"))
            if len(sys.argv) == 3:
                shutil.copy(sys.argv[2], folder / "libplumb_cuda.so")
        plan = folder / "plan.json"
        deeper = folder / "deeper.json"
        plans = [plan, deeper][:len(SHARINGS)]
        for ranks, name in zip(SHARINGS, plans, strict=True):
            planned = call(plumb, "plan", "llama-nano", f"v100:{ranks}", "--global-batch", "8", "--precision", "fp32", "--layout", f"dp=1,tp=1,pp={ranks},mbs=1", "-o", name)
            if planned.returncode != 0:
                sys.exit(f"there is no plan: {planned.stderr}")
        cluster = folder / "gpu.json"
        asked = [("run", plan, "--backend", "cuda", "--steps", "1"), ("validate", plan, "--backend", "cuda", "--steps", "1"),
                 ("calibrate", "--backend", "cuda", "--ranks", "2", "--precision", "fp32", "--budget", "1" if QUICK else "10", "-o", cluster)]
        answers = [call(plumb, *arguments) for arguments in asked]
        expected = "there is no GPU here" if len(sys.argv) == 3 else "there is no libplumb_cuda.so beside the tool"
        if len(sys.argv) == 2 or any(expected in answer.stderr for answer in answers):
            for answer in answers:
                if answer.returncode != 1 or answer.stdout or answer.stderr.count("\n") != 1 or "use --backend cpu" not in answer.stderr:
                    sys.exit(f"no plain refusal: status {answer.returncode}, {answer.stdout}{answer.stderr}")
                if expected not in answer.stderr:
                    sys.exit(f"not this refusal, but \"{expected}\": {answer.stderr}")
            print(f"skipped: {answers[0].stderr.strip()}")
            sys.exit(77)
        passed, failed = 0, 0

        def tried(name, case):
            nonlocal passed, failed
            try:
                print(f"{name}: {case()}", flush=True)
                passed += 1
            except Fault as fault:
                print(f"{name} failed: {fault}", flush=True)
                failed += 1

        for schedule in SCHEDULES:
            for (stages, sharings), own in zip(SHARINGS.items(), plans, strict=True):
                reference = functools.cache(lambda: losses(plumb, own, schedule, "cpu"))
                for sharing in sharings:
                    def compared():
                        worst = compare(reference(), losses(plumb, own, schedule, "cuda", *sharing))
                        return f"{STEPS} steps, losses within {worst:.1e} of the cpu's"

                    tried(f"{schedule} {' '.join(sharing)} on {stages} stages", compared)

        def validated():
            measured = folder / "measured.json"
            planned = call(plumb, "plan", "llama-nano", cluster, "--global-batch", "8", "--precision", "fp32", "--layout", "dp=1,tp=1,pp=2,mbs=1", "-o", measured)
            answer = call(plumb, "validate", measured, "--backend", "cuda", "--steps", STEPS)
            if planned.returncode != 0 or answer.returncode != 0:
                raise Fault(planned.stderr + answer.stderr)
            return answer.stdout

        tried("a calibrated prediction", validated)
        print(f"[cases] {passed} passed, {failed} failed")
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The cuda backend as the tool runs it, beside the cpu's: gpu_test.py PLUMB [libplumb_cuda.so]

Without the library, or without a GPU, the refusal is looked at (exit 1, one sentence) and the rest is skipped (77)."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCHEDULES = ["gpipe", "1f1b", "zb-h1", "pipedream"]
STAGES = [2, 4]
SHARINGS = [[], ["--sms", "all"], ["--cuda-graph"]]
STEPS = "5"


def call(*arguments):
    return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=600)


def losses(plumb, plan, schedule, backend, *options):
    result = call(plumb, "run", plan, "--backend", backend, "--schedule", schedule, "--steps", STEPS, "--json", *options)
    if result.returncode != 0:
        sys.exit(f"{schedule} on {backend}: {result.stderr}")
    return json.loads(result.stdout)["losses"]


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
        for ranks, name in zip(STAGES, (plan, deeper), strict=True):
            planned = call(plumb, "plan", "llama-nano", f"v100:{ranks}", "--global-batch", "8", "--precision", "fp32", "--layout", f"dp=1,tp=1,pp={ranks},mbs=1", "-o", name)
            if planned.returncode != 0:
                sys.exit(f"there is no plan: {planned.stderr}")
        cluster = folder / "gpu.json"
        asked = [("run", plan, "--backend", "cuda", "--steps", "1"), ("validate", plan, "--backend", "cuda", "--steps", "1"),
                 ("calibrate", "--backend", "cuda", "--ranks", "2", "--precision", "fp32", "--budget", "10", "-o", cluster)]
        answers = [call(plumb, *arguments) for arguments in asked]
        if any(answer.returncode != 0 for answer in answers):
            expected = "there is no GPU here" if len(sys.argv) == 3 else "there is no libplumb_cuda.so beside the tool"
            for tried in answers:
                if tried.returncode != 1 or tried.stdout or tried.stderr.count("\n") != 1 or "use --backend cpu" not in tried.stderr:
                    sys.exit(f"no plain refusal: status {tried.returncode}, {tried.stdout}{tried.stderr}")
                if expected not in tried.stderr:
                    sys.exit(f"not this refusal, but \"{expected}\": {tried.stderr}")
            print(f"skipped: {answers[0].stderr.strip()}")
            sys.exit(77)
        passed = 0
        for schedule, stages, own in [(schedule, *sized) for schedule in SCHEDULES for sized in zip(STAGES, (plan, deeper), strict=True)]:
            reference = losses(plumb, own, schedule, "cpu")
            for sharing in SHARINGS:
                ours = losses(plumb, own, schedule, "cuda", *sharing)
                worst = max(abs(a / b - 1) for a, b in zip(ours, reference, strict=True))
                if worst > 1e-4:
                    sys.exit(f"{schedule} {stages} {sharing}: losses of the GPU {ours}, of the cpu {reference}")
                print(f"{schedule} {' '.join(sharing)} on {stages} stages: {STEPS} steps, losses within {worst:.1e} of the cpu's")
                passed += 1
        measured = folder / "measured.json"
        planned = call(plumb, "plan", "llama-nano", cluster, "--global-batch", "8", "--precision", "fp32", "--layout", "dp=1,tp=1,pp=2,mbs=1", "-o", measured)
        validated = call(plumb, "validate", measured, "--backend", "cuda", "--steps", STEPS)
        if planned.returncode != 0 or validated.returncode != 0:
            sys.exit(f"a calibrated prediction: {planned.stderr}{validated.stderr}")
        print(validated.stdout)
        passed += 1
    print(f"[cases] {passed} passed, 0 failed")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Asks two builds of plumb the same questions (commands.txt) and compares every byte of their answers: stdout, stderr,
exit code and the files that they write. It serves changes of structure, which may change no answer.

usage: compare.py PLUMB_BEFORE PLUMB_AFTER [SHARED] [--presets]

--presets asks for the simulation of every preset model under many layouts instead, with Plumb's own kernels on a device
that fuses them and on one that does not, and with a framework's. The devices have room for every model.
"""
import collections
import itertools
import json
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


LAYOUTS = [
    "dp=8,tp=1,pp=1,mbs=1,zero=1",
    "dp=4,tp=2,pp=1,mbs=2",
    "dp=2,tp=4,pp=1,sp=1,mbs=1,recompute=selective",
    "dp=1,tp=2,pp=2,cp=2,mbs=1,recompute=full",
    "dp=2,tp=2,pp=2,sp=1,mbs=1,schedule=zb-h1",
    "dp=4,tp=1,pp=2,ep=4,mbs=1,schedule=zb-h1,recompute=selective",
    "dp=4,tp=2,pp=1,ep=4,etp=1,sp=1,mbs=1,zero=3",
    "dp=4,tp=2,pp=1,ep=2,etp=2,sp=1,mbs=1",
    "dp=1,tp=8,pp=1,mbs=1,sp=1",
]


def write_cluster(plumb, path, fuses):
    """Writes a cluster in whose devices every model fits. Devices are known to fuse kernels if they have a sample of a
    product with a bias."""
    cluster = json.loads(subprocess.run([plumb, "clusters", "h100", "--json"], capture_output=True, check=True).stdout)
    cluster["device"]["memory_gib"] = 100_000
    if fuses:
        gemm_with_bias = [2048, 4096, 1024, 1, 3]
        times = {"median_s": 1e-4, "fastest_s": 1e-4, "slowest_s": 1e-4, "repeats": 1, "busy_ranks": 1}
        cluster["kernel_samples"] = [{"kernel": "gemm", "shape": gemm_with_bias, **times}]
    path.write_text(json.dumps(cluster))
    return path


def preset_questions(plumb, folder):
    models = json.loads(subprocess.run([plumb, "models", "--json"], capture_output=True, check=True).stdout)["models"]
    plain = write_cluster(plumb, pathlib.Path(folder) / "plain.json", False)
    fusing = write_cluster(plumb, pathlib.Path(folder) / "fusing.json", True)
    for model, layout, where in itertools.product(models, LAYOUTS, [plain, f"{plain} --stack megatron-core", fusing]):
        yield f"simulate {model['name']} {where} --global-batch 64 --layout {layout} --json"


def answers(plumb, commands):
    """Returns [(command, stdout, stderr, exit code)], and the bytes of each file that was written."""
    with tempfile.TemporaryDirectory() as folder:
        given = []
        for command in commands:
            done = subprocess.run([plumb, *shlex.split(command)], cwd=folder, capture_output=True, timeout=600)
            given.append((command, done.stdout, done.stderr, done.returncode))
        return given, {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}


def main():
    over_presets = "--presets" in sys.argv
    given = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    before, after = (str(pathlib.Path(path).resolve()) for path in given[:2])
    shared = pathlib.Path(given[2]).resolve() if len(given) > 2 else None
    with tempfile.TemporaryDirectory() as folder:
        commands = list(preset_questions(before, folder) if over_presets else questions(shared))
        compare(before, after, commands)


def compare(before, after, commands):
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
    codes = collections.Counter(code for *_, code in old)
    counts = ", ".join(f"{count} with exit code {code}" for code, count in sorted(codes.items()))
    print(f"{len(commands)} commands ({counts}), {len(old_files)} files: {differing} differences")
    sys.exit(1 if differing else 0)


main()

#!/usr/bin/env python3
"""Exchanges behind the compute of the other action of a pair, predicted and measured over a slow network.

Two ranks in network namespaces have half of the experts each, or half of every layer, and exchange tokens or sums by MPI over
TCP. `plumb validate` runs one plan as 1F1B, where a rank waits for each exchange, and as DualPipeV or STP on one pipeline
rank, where an exchange of F goes on beside B and the other way round. Both must train alike; the times are printed beside the
prediction, and judged by nobody. Two ranks are all for which a machine of two cores has a core each.
Needs root, ip, tc and mpirun; skipped (77) with a reason where they are not there or not allowed.

    tests/emulated/overlapped_pairs.py build/tools/plumb [--steps 5] [--budget 20]
"""

import argparse
import json
import os
import tempfile

from emulated_network import cluster, mpirun, require_means, run

RANKS = 2
MBIT = 1000
CASES = (("mixtral-nano", "dp=2,ep=2", "dualpipev"), ("llama-nano", "tp=2", "stp"))  # model, degrees, schedule of pairs
TRAINING = ["--global-batch", "64", "--seq", "256", "--stack", "plumb"]


def measured_cluster(plumb, folder, budget_s):
    """Returns the file of a cluster of this machine's cores behind the slow network."""
    machine, path = os.path.join(folder, "machine.json"), os.path.join(folder, "cluster.json")
    run(plumb, "calibrate", "--backend", "cpu", "--ranks", str(RANKS), "--budget", str(budget_s), "-o", machine)
    mpirun([plumb, "calibrate", "--only", "transport", "--base", machine, "-o", path], RANKS)
    return path


def validated(plumb, folder, cluster_file, model, layout, steps):
    plan = os.path.join(folder, "plan.json")
    run(plumb, "plan", model, cluster_file, *TRAINING, "--layout", layout, "-o", plan)
    return json.loads(mpirun([plumb, "validate", plan, "--backend", "cpu", "--steps", str(steps), "--json"], RANKS))


def compare(plumb, folder, cluster_file, case, steps):
    model, degrees, schedule = case
    layouts = {"1f1b": f"{degrees},pp=1,mbs=4", schedule: f"{degrees},pp=1,v=2,mbs=4,schedule={schedule}"}
    answers = {name: validated(plumb, folder, cluster_file, model, layout, steps) for name, layout in layouts.items()}
    for name, answer in answers.items():
        step = answer["step_time"]
        print(f"| {model} | {name} | {1e3 * step['predicted_s']:.0f} | {1e3 * step['measured_s']:.0f} | {answer['steps']} |")
    serial, paired = answers.values()
    if paired["step_time"]["predicted_s"] >= serial["step_time"]["predicted_s"]:
        raise RuntimeError(f"{schedule}: no exchange is predicted to hide behind the other action of a pair")
    for one, other in zip(serial["losses"], paired["losses"]):
        if abs(one - other) > 1e-5 * abs(one):
            raise RuntimeError(f"{schedule}: the losses differ: {one} and {other}")
    return serial["load"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plumb")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--budget", type=int, default=20, help="seconds to measure this machine's kernels")
    arguments = parser.parse_args()
    plumb = os.path.abspath(arguments.plumb)
    require_means(plumb)
    print("| model | schedule | predicted, ms | measured, ms | of |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder, cluster(MBIT, RANKS):
        file = measured_cluster(plumb, folder, arguments.budget)
        loads = [compare(plumb, folder, file, case, arguments.steps) for case in CASES]
    print(", ".join(loads))
    print(f"[cases] {len(CASES)} passed, 0 failed")


if __name__ == "__main__":
    main()

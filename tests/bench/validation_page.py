#!/usr/bin/env python3
"""Predicts and runs a training on this machine: calibrates, plans gpt-micro on 2 ranks, validates, and writes a page.

    tests/bench/validation_page.py build/tools/plumb [-o docs/validation.md] [--repeat 3] [--steps 10] [--budget 30]

On a quiet machine the step is to be predicted within 5 %. The page has the load beside the measurements.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import tempfile


def plumb(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def milliseconds(seconds):
    return f"{1e3 * seconds:.1f}"


def cause_rows(answer):
    """Returns a row for each kind of cause: its predicted and measured time on the critical path, and its share of the
    step's error."""
    sums = {}
    for cause in answer["causes"]:
        entry = sums.setdefault(cause["cause"], [0.0, 0.0])
        entry[0] += cause["predicted_s"]
        entry[1] += cause["measured_s"]
    step = answer["step_time"]["measured_s"]
    return "".join(f"| {kind} | {milliseconds(predicted)} | {milliseconds(measured)} | {100 * (predicted - measured) / step:+.1f} |\n"
                   for kind, (predicted, measured) in sums.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plumb")
    parser.add_argument("-o", "--output", default="docs/validation.md")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--budget", type=float, default=30)
    chosen = parser.parse_args()
    program = os.path.abspath(chosen.plumb)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        machine, plan = pathlib.Path(folder) / "machine.json", pathlib.Path(folder) / "plan.json"
        plumb(program, "calibrate", "--backend", "cpu", "--ranks", 2, "--budget", chosen.budget, "-o", machine)
        plumb(program, "plan", "gpt-micro", f"{machine}:2", "--global-batch", 8, "--layout", "pp=2,schedule=1f1b", "-o", plan)
        load = os.getloadavg()[0]
        answer = json.loads(plumb(program, "validate", plan, "--steps", chosen.steps, "--repeat", chosen.repeat, "--json"))
    step, interval = answer["step_time"], answer["step_time_interval"]
    low, high = (100 * (step["predicted_s"] / interval[key] - 1) for key in ("high_s", "low_s"))
    bubble, machine = answer["bubble_ratio"], answer["machine"]
    text = f"""# Real numerics, predicted and run

Written by `tests/bench/validation_page.py PLUMB -o {chosen.output} --repeat {chosen.repeat} --steps {chosen.steps} --budget {chosen.budget:g}` on
{datetime.date.today()}: {os.cpu_count()} cores, {platform.system()} {platform.release()}, load {load_before:.1f} before the calibration and {load:.1f}
before the run (of which the calibration itself makes 2). gpt-micro, pp=2, 1f1b, 8 micro-batches, a thread a rank.
The machine ran at {machine['speed_before']:.2f} of its calibrated speed before the run and at {machine['speed_after']:.2f} after it; under way other
programs had {machine['others_cores']:.2f} cores, and the host took {machine['host_cores']:.2f}.

| | predicted | measured | error |
| --- | --- | --- | --- |
| step, ms (median of {answer['steps']}) | {milliseconds(step['predicted_s'])} | {milliseconds(step['measured_s'])} | {100 * step['error_ratio']:+.1f} % |
| with {100 * interval['confidence_ratio']:.0f} % confidence | | {milliseconds(interval['low_s'])} to {milliseconds(interval['high_s'])} | {low:+.1f} to {high:+.1f} % |
| fastest and slowest step, ms | | {milliseconds(answer['fastest_step_s'])}, {milliseconds(answer['slowest_step_s'])} | |
| bubble, % | {100 * bubble['predicted']:.1f} | {100 * bubble['measured']:.1f} | {100 * (bubble['predicted'] - bubble['measured']):+.1f} points |

Where the error comes from, along the critical path:

| | predicted, ms | measured, ms | of the step's error, % of the step |
| --- | --- | --- | --- |
{cause_rows(answer)}
| operation | stage | predicted, ms | measured, ms | with confidence, ms | error, % |
| --- | --- | --- | --- | --- | --- |
"""
    for op in answer["ops"]:
        spread = op["measured_interval"]
        text += (f"| {op['op']} | {op['stage']} | {milliseconds(op['predicted_s'])} | {milliseconds(op['measured_s'])} | "
                 f"{milliseconds(spread['low_s'])} to {milliseconds(spread['high_s'])} | {100 * op['error_ratio']:+.1f} |\n")
    text += "\n| rank | the loop, late waking, ms | peak memory predicted, MiB | measured, MiB |\n| --- | --- | --- | --- |\n"
    for rank in answer["ranks"]:
        text += (f"| {rank['rank']} | {milliseconds(rank['overhead']['measured_s'])} | {rank['predicted_peak_bytes'] / 2**20:.2f} | "
                 f"{rank['measured_peak_bytes'] / 2**20:.2f} |\n")
    pathlib.Path(chosen.output).write_text(text, encoding="utf-8")
    kept = ("date", "load", "steps", "step_time", "step_time_interval", "fastest_step_s", "slowest_step_s", "machine")
    run = {"title": "real numerics, gpt-micro, pp=2, 1f1b, 2 cores"} | {key: answer[key] for key in kept}
    run["ranks"] = [{key: rank[key] for key in ("rank", "predicted_peak_bytes", "measured_peak_bytes")}
                    for rank in answer["ranks"]]
    runs = pathlib.Path(chosen.output).with_suffix(".json")  # all runs so far: their errors make the interval
    earlier = json.loads(runs.read_text(encoding="utf-8")) if runs.exists() else []
    runs.write_text(json.dumps([run, *earlier], indent=1) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

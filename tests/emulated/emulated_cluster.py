#!/usr/bin/env python3
"""Schedules over a network that is slow on purpose, predicted and replayed by the clock.

Four network namespaces of this machine, each with a card that tc's tbf limits, are joined by a bridge; mpirun starts a
rank in each, over TCP. `plumb calibrate --only transport` times single messages, and `plumb validate` predicts each step
over the link that was fitted to them, before anything runs. Then a link is cut under way.
Needs root, ip, tc and mpirun; skipped (77) with a reason where they are not there or not allowed.

    tests/emulated/emulated_cluster.py build/tools/plumb [-o docs/emulated.md] [--steps 5]
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import time

from emulated_network import BURST_KIB, cluster, mpirun, mpirun_command, mpirun_environment, require_means, run

RANKS = 4
LINKS = {"1 Gbit/s": (1000, 1.0), "200 Mbit/s": (200, 0.25)}  # rate in Mbit/s, MiB of a message
SCHEDULES = {
    "gpipe": ("f=20,b=40", []),
    "1f1b": ("f=20,b=40", []),
    "interleaved": ("f=20,b=40", ["-v", "2"]),
    "zb-h1": ("f=20,i=20,w=20", []),
}
MICROBATCHES = 8
SOME_STEPS_BYTES = 16 << 20  # of rank 2, which sends 16 messages of 0.25 MiB a step


def calibrated(plumb, folder):
    """Returns a file with the link between the first two ranks, and the file's document."""
    path = os.path.join(folder, "link.json")
    mpirun([plumb, "calibrate", "--only", "transport", "-o", path], RANKS)
    with open(path, encoding="utf-8") as file:
        return path, json.load(file)


def measured(plumb, schedule, link, mib, steps):
    costs, numbers = SCHEDULES[schedule]
    costs += f",mib={mib},gb_per_s=1,unit=ms"  # the link sets the bandwidth
    return json.loads(mpirun([plumb, "validate", "--backend", "timed", "--schedule", schedule, "-p", str(RANKS), "-m",
                              str(MICROBATCHES), *numbers, "--costs", costs, "--link", link, "--steps", str(steps), "--json"], RANKS))


def cut_link(plumb, folder):
    """Rank 2's card goes down under way: the others must stop, say which rank waited for which, and leave their timelines."""
    trace = os.path.join(folder, "cut.json")
    watchdog_s, patience_s = 3, 40
    command = mpirun_command([plumb, "run", "--backend", "timed", "--schedule", "1f1b", "-p", str(RANKS), "-m", "8", "--costs",
                              "f=20,b=40,mib=0.25,gb_per_s=1,unit=ms", "--steps", "10000", "--watchdog", str(watchdog_s),
                              "--trace", trace], RANKS)
    process = subprocess.Popen(command, env=mpirun_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sent = pathlib.Path("/sys/class/net/plumb-v2/statistics/rx_bytes")
    while int(sent.read_text(encoding="utf-8")) < SOME_STEPS_BYTES:
        if process.poll() is not None:
            raise RuntimeError(f"the run to be cut ended before: {process.stderr.read()}")
        time.sleep(0.1)
    run("ip", "link", "set", "plumb-v2", "down")
    start = time.monotonic()
    try:
        _, error = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise RuntimeError("a cut link hangs the run") from None
    took = time.monotonic() - start
    # The place where the cut is noticed is chance: inside an action, or where the ranks meet between two steps.
    said = [line for line in error.splitlines() if re.match(r"plumb: rank \d+, (action|before step) \d+", line) and
            re.search(r"(from|waited for) rank \d+", line)]
    if process.returncode == 0 or not said:
        raise RuntimeError(f"a cut link is not told: status {process.returncode}, {error}")
    partial = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("cut.rank")]
    for path in partial:
        json.loads(run(plumb, "trace", "info", path, "--json").stdout)
    if not partial:
        raise RuntimeError(f"nothing is left of the interrupted step: {error}")
    return took, said[0], len(partial)


def table(rows):
    text = "| link | schedule | predicted, ms | measured, ms | of | error, % | with confidence, % |\n"
    text += "| --- | --- | --- | --- | --- | --- | --- |\n"
    for link, schedule, answer in rows:
        step, interval = answer["step_time"], answer["step_time_interval"]
        low, high = (100 * (step["predicted_s"] / interval[key] - 1) for key in ("high_s", "low_s"))
        text += (f"| {link} | {schedule} | {1e3 * step['predicted_s']:.1f} | {1e3 * step['measured_s']:.1f} | {answer['steps']} | "
                 f"{100 * step['error_ratio']:+.2f} | {low:+.2f} to {high:+.2f} ({100 * interval['confidence_ratio']:.0f} %) |\n")
    return text


def write_answers(path, rows):
    """Writes the runs in the form of which `plumb score --runs` makes a table."""
    kept = ("date", "load", "steps", "step_time", "step_time_interval", "fastest_step_s", "slowest_step_s")
    answers = [{"title": f"emulated cluster, {link}, {schedule}"} | {key: answer[key] for key in kept}
               for link, schedule, answer in rows]
    path.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


def link_table(links):
    text = "| link | of a message, us | more beyond | us | GB/s | burst, KiB | mean residual, % |\n"
    text += "| --- | --- | --- | --- | --- | --- | --- |\n"
    for name, file in links.items():
        link = file["link"]
        text += (f"| {name} | {link['latency_us']:.0f} | {link['eager_kib']:.0f} KiB | {link['rendezvous_us']:.0f} | "
                 f"{link['bandwidth_gb_per_s']:.4f} | {link['burst_kib']:.0f} | {file['residual_pct']['mean']:.1f} |\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plumb")
    parser.add_argument("-o", "--output")
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    plumb = os.path.abspath(arguments.plumb)
    require_means(plumb)
    rows, links = [], {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        for name, (mbit, mib) in LINKS.items():
            with cluster(mbit, RANKS):
                link, links[name] = calibrated(plumb, folder)
                for schedule in SCHEDULES:
                    rows.append((name, schedule, measured(plumb, schedule, link, mib, arguments.steps)))
                    if rows[-1][2]["step_time"]["measured_s"] <= 0:
                        raise RuntimeError("nothing was measured")
        with cluster(200, RANKS):
            took, said, partial = cut_link(plumb, folder)
    print(table(rows))
    print(link_table(links))
    print(f"a link cut under way: {said} ({took:.1f} s later; {partial} interrupted steps are readable)")
    if arguments.output:
        write_answers(pathlib.Path(arguments.output).with_suffix(".json"), rows)
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(f"""# An emulated cluster

Written by `tests/emulated/emulated_cluster.py PLUMB -o {arguments.output} --steps {arguments.steps}` on {datetime.date.today()}: {os.cpu_count()} cores,
{platform.system()} {platform.release()}, load {load:.1f} at the start. Four ranks in network namespaces, each behind a card limited by a
token bucket ({BURST_KIB} KiB), MPI over TCP; {MICROBATCHES} micro-batches; operations of 20 and 40 ms that wait; real messages of 1 MiB and
0.25 MiB. The prediction knows the durations, the bytes, and the link that `plumb calibrate --only transport` has fitted to
single messages of other sizes before.

{table(rows)}
{link_table(links)}
A link cut under way (rank 2's card goes down, watchdog of 3 s) ended the run {took:.1f} s later:

    {said}
""")
    print(f"[cases] {len(rows) + 1} passed, 0 failed")


if __name__ == "__main__":
    main()

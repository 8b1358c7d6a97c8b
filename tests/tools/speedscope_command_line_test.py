#!/usr/bin/env python3
"""Opens a trace in speedscope (npm) in a browser without a window, and reads which lanes it shows.

usage: speedscope_command_line_test.py PLUMB

Where there is no chromium, no npm or no registry the case is skipped with the reason.
"""
import base64
import collections
import html
import json
import re
import shutil
import subprocess
import tarfile
import unittest

from command_line import CommandLineTest, run_cases

BROWSER, NPM = shutil.which("chromium"), shutil.which("npm")
LANE = re.compile(r"(rank \d+: [^<]*?\(pid \d+\), [^<]*?\(tid \d+\))(?:<[^>]*>)+([\d.]+)(ms|s)<")
UNIT = {"s": 1.0, "ms": 1e-3}


class Speedscope(CommandLineTest):
    def speedscope(self):
        """Returns the folder of speedscope's page, or skips the case."""
        packed = subprocess.run([NPM, "pack", "speedscope@1.25.0", "--silent"], cwd=self.folder, capture_output=True, text=True, timeout=120)
        if packed.returncode != 0:
            self.skipTest(f"npm gives no speedscope: {packed.stderr.strip().splitlines()[-1:]}")
        with tarfile.open(self.folder / packed.stdout.strip().splitlines()[-1]) as archive:
            archive.extractall(self.folder)
        return self.folder / "package" / "dist" / "release"

    @unittest.skipUnless(BROWSER and NPM, "there is no chromium, or no npm")
    def test_lanes_have_the_spans_of_the_trace_one_deep(self):
        page, trace = self.speedscope(), self.folder / "step.json"
        self.done("simulate", "--schedule", "zb-h1", "-p", 4, "-m", 8, "--costs", "f=1,i=1,w=1,c=0.1", "--trace", trace)
        text = base64.b64encode(trace.read_bytes()).decode()
        (page / "trace.js").write_text(f"speedscope.loadFileFromBase64('step.json', '{text}')")
        shown = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
                                "--allow-file-access-from-files", "--virtual-time-budget=10000", "--dump-dom",
                                f"file://{page}/index.html#localProfilePath={page}/trace.js"], capture_output=True, text=True, timeout=200)
        lanes = {html.unescape(name): float(time) * UNIT[unit] for name, time, unit in LANE.findall(shown.stdout)}
        # A lane's weight is the time in which some span of it runs. It is the sum of the spans if none lies in another.
        sums = collections.defaultdict(float)
        names = {}
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event["ph"] == "X":
                sums[event["pid"], event["tid"]] += event["dur"] / 1e6
            elif event["name"] in ("process_name", "thread_name"):
                names[event["pid"], event.get("tid")] = event["args"]["name"]
        expected = {f"{names[pid, None]} (pid {pid}), {names[pid, tid]} (tid {tid})": time for (pid, tid), time in sums.items()}
        self.assertEqual(set(lanes), set(expected))
        for name, time in expected.items():
            self.assertAlmostEqual(lanes[name], time, delta=0.01, msg=name)


if __name__ == "__main__":
    run_cases()

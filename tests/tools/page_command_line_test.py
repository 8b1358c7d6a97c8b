#!/usr/bin/env python3
"""Checks the pages of answers: their numbers are those of the JSON, they ask nothing of a network, and a browser draws them.

usage: page_command_line_test.py PLUMB
"""
import base64
import html
import json
import re
import shutil
import struct
import subprocess
import unittest

from command_line import CommandLineTest, run_cases
from megatron_log import megatron_log

BROWSER = shutil.which("chromium")


# Presses "+" on the timeline and an arrow on the points, takes the first series of points away, and notes what came of it.
USER = """
const press = (on, key) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const canvas = document.querySelector("canvas"), chart = document.querySelector(".chart");
const found = { whole: page.blocks.find((block) => block.kind === "timeline").end };
press(canvas, "+");
press(chart, "ArrowRight");
found.picked = chart.nextElementSibling.textContent;
found.points = chart.querySelectorAll("circle").length;
chart.previousElementSibling.querySelector("button").click();
found.points_without_the_first = chart.querySelectorAll("circle").length;
window.dispatchEvent(new Event("beforeprint"));  // draws at once: a browser without a window may fire no frame
found.timeline = [Number(canvas.dataset.begin), Number(canvas.dataset.end)];
document.body.dataset.found = JSON.stringify(found);
"""


def data_of(page):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.S).group(1))


def block_of(data, title):
    return next(block for block in data["blocks"] if block.get("title") == title)


def doubles(text):
    raw = base64.b64decode(text)
    return struct.unpack(f"<{len(raw) // 8}d", raw)


def browse(page):
    """Returns the document that the browser makes of a page, and what it said on its way."""
    said = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                           "--virtual-time-budget=3000", "--dump-dom", page.as_uri()],
                          capture_output=True, text=True, timeout=120)
    return said.stdout, said.stderr


class Page(CommandLineTest):
    """Each case writes the page of a verb, and keeps it to the rules that hold for all of them."""

    SEARCH = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128)

    def page(self, *question):
        """Returns the data of the page and the JSON of the same command."""
        path = self.folder / f"{question[0]}.html"
        answer = self.json(*question, "--html", path)
        text = path.read_text()
        self.assertIsNone(re.search(r'(src|href)="(?!data:)', text))
        for word in ("fetch(", "XMLHttpRequest", "@import", "url("):
            self.assertNotIn(word, text)
        if BROWSER:
            drawn, said = browse(path)
            self.assertIn('data-ready="yes"', drawn)
            self.assertNotIn("CONSOLE", said)
        data = data_of(path)
        self.assertEqual(data["blocks"][0]["kind"], "verdict")
        self.assertIn(f"plumb {question[0]}", block_of(data, "To repeat it")["text"])
        return data, answer

    def busy_of(self, timeline, word=""):
        """Returns the seconds that each rank computes in a timeline."""
        return [sum(end - start for start, end in zip(doubles(lane["start"]), doubles(lane["end"])))
                for lane in timeline["lanes"] if lane["name"].startswith("rank") and lane["name"].endswith(word)]

    def assert_all_close(self, found, expected):
        for one, other in zip(found, expected, strict=True):
            self.assertAlmostEqual(one, other, delta=1e-9 * max(1, abs(other)))

    def test_a_simulation(self):
        data, answer = self.page("simulate", self.llama_plan())
        timeline = block_of(data, "Timeline")
        self.assertEqual(timeline["end"], answer["step_time_s"])
        self.assert_all_close(self.busy_of(timeline), [rank["busy_s"] for rank in answer["ranks"]])
        memory = block_of(data, "Memory at the peak of each rank")
        self.assertEqual([sum(bar["values"]) for bar in memory["bars"]], answer["peak_memory_bytes"])
        curves = block_of(data, "Memory over time")["series"]
        self.assertEqual([max(point["y"] for point in curve["points"]) for curve in curves], answer["peak_memory_bytes"])
        for bar in block_of(data, "Time of each rank by cause")["bars"]:
            self.assertAlmostEqual(sum(bar["values"]), answer["step_time_s"], places=9)
        binding = block_of(data, "What binds the step: its change by 1 % more of each figure")
        self.assertEqual({bar["name"]: bar["value"] for bar in binding["bars"]},
                         answer["sensitivity"]["step_change_pct_per_pct_of"])

    def test_a_schedule_without_bytes_shows_no_memory(self):
        path = self.folder / "page.html"
        self.done("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--html", path)
        self.assertEqual([block for block in data_of(path)["blocks"] if "emory" in block.get("title", "")], [])

    def test_the_time_of_ranks_is_divided_by_the_causes_of_the_answer(self):
        data, answer = self.page("simulate", "llama-3-8b", "h100:16", "--global-batch", 64, "--layout", "tp=2,pp=2,v=1,mbs=1")
        causes = block_of(data, "Time of each rank by cause")
        names = [kind["name"] for kind in causes["kinds"]]
        for bar, rank in zip(causes["bars"], answer["ranks"], strict=True):
            by_name = dict(zip(names, bar["values"]))
            self.assertAlmostEqual(by_name["tensor collectives"], rank["time"]["tensor_s"], places=9)
            self.assertAlmostEqual(sum(value for name, value in by_name.items() if name.startswith("idle")), rank["idle_s"], places=9)

    def test_a_plan(self):
        data, answer = self.page(*self.SEARCH, "--explain")
        points = block_of(data, "The layouts that were looked at")
        series = {one["name"]: one["points"] for one in points["series"]}
        ranked = [(max(row["prediction"]["peak_memory_bytes"]), row["prediction"]["step_time_s"]) for row in answer["ranked"]]
        self.assertEqual([(point["x"], point["y"]) for point in series["ranked"]], ranked)
        front = self.json(*self.SEARCH, "--front", "memory")["ranked"]
        self.assertEqual([point["y"] for point in series["no other is both faster and smaller"]],
                         [row["prediction"]["step_time_s"] for row in front])
        self.assertGreater(len(series["slower"]), 5)
        self.assertTrue(all(point["y"] >= ranked[0][1] for point in series["slower"]))
        counts = {bar["name"]: bar["value"] for bar in block_of(data, "Why the others lost, by counts")["bars"]}
        self.assertEqual(counts["layouts too large"], answer["counts"]["too_large"])
        longer = block_of(data, "How much longer the step is with another value of a key")["bars"]
        self.assertEqual(len(longer), sum(1 for other in answer["other_values"] if other["layout"]))
        self.assertEqual(block_of(data, "Timeline")["end"], answer["best"]["prediction"]["step_time_s"])

    def test_a_sweep(self):
        plan = self.llama_plan()
        data, answer = self.page("whatif", plan, "--vary", "training.global_batch=32,64,128")
        (line,) = block_of(data, "Step time")["series"]
        self.assertEqual([(point["x"], point["y"]) for point in line["points"]],
                         [(row["values"]["training.global_batch"], row["prediction"]["step_time_s"]) for row in answer["rows"]])
        binding = block_of(data, "What binds the step: its change by 1 % more of each figure")
        self.assertEqual({bar["name"]: bar["value"] for bar in binding["bars"]},
                         self.json("simulate", plan)["sensitivity"]["step_change_pct_per_pct_of"])

    def test_a_validation(self):
        data, answer = self.page("validate", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 4,
                                 "--costs", "f=5,b=10,c=1,unit=ms", "--steps", 3)
        self.assertIn(answer["verdict"]["why"], data["blocks"][0]["text"])
        timeline = block_of(data, "Predicted, and the median step measured")
        self.assert_all_close(self.busy_of(timeline, "predicted"), [rank["busy"]["predicted_s"] for rank in answer["ranks"]])
        self.assert_all_close(self.busy_of(timeline, "measured"), [rank["busy"]["measured_s"] for rank in answer["ranks"]])
        causes = block_of(data, "The error of the step by cause: predicted less measured")["bars"]
        self.assertAlmostEqual(sum(bar["value"] for bar in causes),
                               answer["step_time"]["predicted_s"] - answer["step_time"]["measured_s"], places=9)

    def test_a_score(self):
        row = {"id": "one", "source": {"repo": "VIA-Research/vTrain"}, "hardware": "A100-80GB SXM, 8 per node",
               "model": {"name": "GPT 3.6B", "layers": 30, "hidden": 3072, "heads": 32, "ffn": 12288, "seq": 2048, "gated_mlp": False},
               "gpus": 64, "gpus_per_node": 8, "tp": 8, "pp": 1, "dp": 8, "mbs": 8, "gbs": 512, "zero": 0,
               "recompute": "full", "precision": "mixed fp16", "schedule": "1F1B", "measured": {"step_time_s": 5.0}}
        rows = self.write("rows.json", json.dumps({"meta": {}, "rows": [row, dict(row, id="two", mbs=4)]}))
        data, answer = self.page("score", rows)
        (bar,) = block_of(data, "Step times, with all that is known of a source")["bars"]
        errors = [of["error_pct"] for of in answer["rows"]]
        self.assertEqual((bar["name"], bar["value"]), ("rows.json", answer["sources"][0]["step_time"]["bias_pct"]))
        self.assertEqual((bar["low"], bar["high"]), (min(errors), max(errors)))
        points = block_of(data, "Step times")["series"][0]["points"]
        self.assertEqual([(of["measured"], of["predicted"]) for of in answer["rows"]], [(point["x"], point["y"]) for point in points])

    def test_an_order_that_was_searched(self):
        data, answer = self.page("schedule", "search", "-p", 4, "-m", 8, "--costs", "f=1,i=1.5,w=0.8,c=0.1")
        best, bound = block_of(data, "The course of the search")["series"]
        self.assertEqual(best["points"][-1]["y"], answer["span_s"])
        self.assertEqual(bound["points"][-1]["y"], answer["span_bound_s"])
        self.assertEqual(block_of(data, "Timeline")["end"], answer["makespan_s"])

    def test_a_run_beside_its_plan(self):
        plan = self.folder / "plan.json"
        self.done(*self.SEARCH, "--stack", "megatron-core", "--layout", "tp=2,pp=2,mbs=1,zero=1,sp=1,v=1,schedule=1f1b", "-o", plan)
        log = self.write("run.log", megatron_log(8, 1.2e3 * self.json("simulate", plan)["step_time_s"]))
        data, answer = self.page("compare", plan, log)
        errors = {bar["name"]: bar["value"] for bar in block_of(data, "Errors of the prediction")["bars"]}
        self.assertAlmostEqual(errors["step"], 100 * answer["step_s"]["error_ratio"], places=9)
        self.assertAlmostEqual(errors["memory of the fullest rank"], 100 * answer["memory_bytes"]["error_ratio"], places=9)
        figures = block_of(data, "Each of these alone would explain the step")["rows"]
        self.assertEqual([row[0] for row in figures], [by["figure"] for by in answer["explaining_figures"]])

    @unittest.skipUnless(BROWSER, "there is no chromium")
    def test_keys_zoom_a_timeline_and_pick_points_and_a_press_takes_a_kind_away(self):
        page = self.folder / "page.html"
        self.done(*self.SEARCH, "--html", page)
        page.write_text(page.read_text().replace("</body>", f"<script>{USER}</script></body>"))
        drawn, said = browse(page)
        self.assertNotIn("CONSOLE", said)
        found = json.loads(html.unescape(re.search(r'data-found="(.*?)"', drawn).group(1)))
        begin, end = found["timeline"]
        self.assertAlmostEqual((end - begin) / found["whole"], 0.5, places=6)
        self.assertRegex(found["picked"], "memory of the fullest rank .* GiB, step time .* s")
        self.assertGreater(found["points"], found["points_without_the_first"])


if __name__ == "__main__":
    run_cases()

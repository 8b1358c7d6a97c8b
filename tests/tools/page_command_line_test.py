#!/usr/bin/env python3
"""Checks the page of an answer: its numbers are those of the JSON, it asks nothing of a network, and a browser draws it.

usage: page_command_line_test.py PLUMB
"""
import base64
import json
import re
import shutil
import struct
import subprocess
import unittest

from command_line import CommandLineTest, run_cases

BROWSER = shutil.which("chromium")


def data_of(page):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.S).group(1))


def block_of(data, title):
    return next(block for block in data["blocks"] if block.get("title") == title)


def doubles(text):
    raw = base64.b64decode(text)
    return struct.unpack(f"<{len(raw) // 8}d", raw)


class Page(CommandLineTest):
    def page(self, *question):
        path = self.folder / "page.html"
        return path, self.json(*question, "--html", path)

    def test_the_numbers_of_the_page_are_those_of_the_answer(self):
        page, answer = self.page("simulate", self.llama_plan())
        data = data_of(page)
        timeline = block_of(data, "Timeline")
        self.assertEqual(timeline["end"], answer["step_time_s"])
        busy = [sum(end - start for start, end in zip(doubles(lane["start"]), doubles(lane["end"])))
                for lane in timeline["lanes"] if lane["name"].startswith("rank")]
        for found, rank in zip(busy, answer["ranks"], strict=True):
            self.assertAlmostEqual(found, rank["busy_s"], places=9)
        memory = block_of(data, "Memory at the peak of each rank")
        self.assertEqual([sum(bar["values"]) for bar in memory["bars"]], answer["peak_memory_bytes"])
        causes = block_of(data, "Time of each rank by cause")
        for bar in causes["bars"]:
            self.assertAlmostEqual(sum(bar["values"]), answer["step_time_s"], places=9)
        self.assertIn("plumb simulate", block_of(data, "To repeat it")["text"])

    def test_the_page_asks_nothing_of_a_network(self):
        text = self.page("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8)[0].read_text()
        self.assertIsNone(re.search(r'(src|href)="(?!data:)', text))
        for word in ("fetch(", "XMLHttpRequest", "@import", "url("):
            self.assertNotIn(word, text)

    @unittest.skipUnless(BROWSER, "there is no chromium")
    def test_a_browser_draws_it_without_an_error(self):
        page, _ = self.page("simulate", "--schedule", "interleaved", "-p", 4, "-m", 8, "-v", 2)
        said = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                               "--virtual-time-budget=3000", "--dump-dom", page.as_uri()],
                              capture_output=True, text=True, timeout=120)
        self.assertIn('data-ready="yes"', said.stdout)
        self.assertIn("data-frame-ms", said.stdout)
        self.assertNotIn("CONSOLE", said.stderr)


if __name__ == "__main__":
    run_cases()

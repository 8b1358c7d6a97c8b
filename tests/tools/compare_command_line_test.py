#!/usr/bin/env python3
"""Checks that a run's log is held against its plan, and one timeline against another.

usage: compare_command_line_test.py PLUMB
"""
import gzip
import json
import pathlib
import subprocess

from command_line import PLUMB, CommandLineTest, run_cases
from megatron_log import megatron_log

class Compare(CommandLineTest):
    def plan(self):
        path = self.folder / "plan.json"
        self.done("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "--stack", "megatron-core", "--layout",
                  "tp=2,pp=2,mbs=1,zero=1,sp=1,v=1,schedule=1f1b", "-o", path)
        return path

    def test_a_log_is_held_against_the_plan_with_what_explains_the_difference(self):
        plan = self.plan()
        predicted = self.json("simulate", plan)["step_time_s"]
        log = self.write("run.log", megatron_log(8, 1.2 * predicted * 1e3))
        answer = self.json("compare", plan, log)
        self.assertEqual(answer["steps"], 7)
        self.assertAlmostEqual(answer["step_s"]["predicted"], predicted, places=6)
        self.assertAlmostEqual(answer["step_s"]["error_ratio"], 1 / 1.212 - 1, delta=0.01)
        self.assertEqual(answer["memory_bytes"]["measured"], 60 * 2**30)
        factors = {by["figure"]: by["factor"] for by in answer["explaining_figures"]}
        self.assertLess(factors["device.peak_tflops"], 0.9)
        text = self.done("compare", plan, log)
        self.assertIn("too short", text.splitlines()[0])

    def test_timers_tell_which_operation_was_mispredicted(self):
        plan = self.plan()
        step = self.json("simulate", plan)["step_time_s"]
        answer = self.json("compare", plan, self.write("run.log", megatron_log(4, step * 1e3, forward=step * 900)))
        names = [of["part"] for of in answer["parts"]]
        self.assertEqual(names[0], "forward-compute")
        self.assertIn("optimizer", names)
        self.assertIsNotNone(answer["explaining_figures"][0]["left_over_log"])

    def test_profiles_of_ranks_are_held_against_the_components_of_the_step(self):
        plan = self.plan()
        step = self.json("simulate", plan)["step_time_s"] * 1e6
        span = {"ph": "X", "pid": 0, "tid": 7, "args": {}}
        files = []
        for rank, share in enumerate((0.5, 0.7)):
            events = [dict(span, cat="user_annotation", name="ProfilerStep#3", ts=0, dur=step),
                      dict(span, cat="kernel", name="sm90_xmma_gemm_bf16", ts=0, dur=share * step),
                      dict(span, cat="gpu_user_annotation", name="PP:0F0", ts=0, dur=step / 10)]
            files.append(self.write(f"rank{rank}.json", json.dumps({"traceEvents": events})))
        answer = self.json("compare", plan, *files)
        parts = {of["part"]: of["most_s"]["measured"] for of in answer["parts"]}
        self.assertAlmostEqual(parts["compute GEMM"], 0.6 * step / 1e6)
        self.assertAlmostEqual(parts["PP bubble and host"], 0.4 * step / 1e6)
        self.assertAlmostEqual(parts["F"], 0.1 * step / 1e6)
        packed = self.folder / "rank0.json.gz"
        packed.write_bytes(gzip.compress(pathlib.Path(files[0]).read_bytes()))
        self.assertEqual(self.json("compare", plan, packed)["parts"], self.json("compare", plan, files[0])["parts"])
        packed.write_bytes(packed.read_bytes()[:-40])
        self.refused(1, "compare", plan, packed, says=["rank0.json.gz", "whole"])
        cut = self.write("cut.json", '{"traceEvents": [{"ph"')
        self.refused(1, "compare", plan, cut, says=["cut.json", "whole"])
        self.refused(2, "compare", plan, self.write("a.log", megatron_log(3, 1000)), files[0], says=["a.log", "alone"])

    def test_pipeline_timelines_of_ranks_are_held_against_the_operations(self):
        plan = self.plan()
        step = self.json("simulate", plan)["step_time_s"] * 1e9
        files = []
        for rank, share in enumerate((0.2, 0.3)):
            forward = [{"name": "forward-step", "ph": phase, "rel_ts": time, "pp_rk": rank}
                       for phase, time in (("B", 0), ("E", share * step))]
            records = [{"name": "iteration", "ph": "B", "pad_before": None}, *forward,
                       {"name": "iteration", "ph": "E", "rel_ts": step, "duration_wall": 1.1 * step}]
            files.append(self.write(f"benchmark-data-0-pipeline-{rank}-tensor-0.json", json.dumps(records, indent=2)))
        answer = self.json("compare", plan, *files)
        self.assertAlmostEqual(answer["step_s"]["error_ratio"], 1 / 1.1 - 1, places=6)
        forward, = answer["parts"]
        self.assertEqual(forward["part"], "forward-step")
        self.assertAlmostEqual(forward["least_s"]["measured"], 0.2 * step / 1e9)
        self.assertAlmostEqual(forward["most_s"]["measured"], 0.3 * step / 1e9)
        self.assertGreater(forward["most_s"]["predicted"], 0)
        self.refused(1, "compare", plan, self.write("cut.json", json.dumps(records)[:-40]), says=["cut.json", "whole file"])

    def test_what_is_no_log_of_this_run_is_refused_in_a_sentence(self):
        plan = self.plan()
        other = self.write("other.log", megatron_log(4, 1000, batch=64))
        self.refused(1, "compare", plan, other, says=["other.log", "64 samples", "128"])
        self.refused(1, "compare", plan, self.write("strange.log", "hello\nworld\n"), says=["strange.log", "Megatron-LM"])
        cut = megatron_log(4, 1000).split("elapsed time", 3)
        self.refused(1, "compare", plan, self.write("cut.log", "elapsed time".join(cut[:3])), says=["cut.log", "cut"])
        self.refused(1, "compare", plan, self.folder / "none.log", says=["none.log"])
        self.refused(1, "compare", plan, plan, says=["plan.json"])

    def test_a_log_and_a_profile_may_come_through_a_pipe(self):
        plan = self.plan()
        log = self.write("run.log", "[2026-01-01 00:00:00] starts\n" + megatron_log(8, 6000))
        span = {"ph": "X", "pid": 0, "tid": 7, "args": {}}
        profile = self.write("rank0.json", json.dumps([dict(span, cat="user_annotation", name="ProfilerStep#3", ts=0, dur=900),
                                                       dict(span, cat="kernel", name="some_gemm", ts=0, dur=500)]))
        for path in (log, profile):
            answers = [self.json("compare", plan, path)]
            with subprocess.Popen([PLUMB, "compare", plan, "/dev/stdin", "--json"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as process:
                answers.append(json.loads(process.communicate(path.read_text())[0]))
            for answer in answers:
                del answer["file"]
            self.assertEqual(*answers)

    def test_a_packed_timeline_is_the_plain_one(self):
        plain, packed = self.folder / "step.json", self.folder / "step.json.gz"
        for path in (plain, packed):
            self.done("simulate", "--schedule", "zb-h1", "-p", 4, "-m", 8, "--costs", "f=1,i=1,w=1,c=0.1", "--trace", path)
        self.assertEqual(gzip.decompress(packed.read_bytes()), plain.read_bytes())
        self.assertLess(packed.stat().st_size * 5, plain.stat().st_size)
        answers = [self.json("trace", "info", path) for path in (plain, packed)]
        for answer in answers:
            del answer["file"]
        self.assertEqual(*answers)

    def test_two_timelines_are_compared_action_by_action(self):
        traces = []
        for name, backward in (("a.json", 2), ("b.json", 3)):
            traces.append(self.folder / name)
            self.done("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", f"f=1,b={backward},c=0", "--trace", traces[-1])
        answer = self.json("trace", "compare", *traces)
        self.assertAlmostEqual(answer["step_time"]["error_ratio"], 33 / 44 - 1)
        self.assertIn("B", self.done("trace", "compare", *traces))
        other = self.folder / "c.json"
        self.done("simulate", "--schedule", "1f1b", "-p", 2, "-m", 8, "--costs", "f=1,b=2,c=0", "--trace", other)
        self.refused(1, "trace", "compare", traces[0], other, says=["a.json", "c.json"])
        foreign = self.write("foreign.json", '[{"ph": "X", "name": "k", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]')
        self.refused(1, "trace", "compare", traces[0], foreign, says=["foreign.json", "another program"])


if __name__ == "__main__":
    run_cases()

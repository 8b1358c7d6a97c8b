#!/usr/bin/env python3
"""The tool on the played CUDA (played/played.h), as it is on a GPU: run, validate, calibrate, faults, tools/gpu_check.

usage: played_tool_test.py PLUMB FOLDER    PLUMB: the tool; FOLDER: of libplumb_cuda.so and what it is played on"""

import json
import os
import subprocess
import sys
import unittest

from played_tool import HAS_NCCL, SCHEDULES, SOURCE, PlayedTool, needs_nccl


class PlayedToolTest(PlayedTool):
    @needs_nccl
    def test_experts_spread_over_gpus_train_to_the_cpu_s_losses(self):
        plan = self.plan("dp=2,ep=2,zero=1,mbs=1", model="mixtral-nano")
        ours = self.losses(plan, "--backend", "cuda", "--gpus", "each", played="devices=2")
        self.assert_near(ours, self.losses(plan, "--backend", "cpu"), 1e-5)

    def test_pipelines_train_to_the_cpu_s_losses_and_are_compared_op_by_op(self):
        for seed, (ranks, schedule) in enumerate([(r, s) for r in (2, 4) for s in SCHEDULES]):
            with self.subTest(schedule=schedule, ranks=ranks):
                plan = self.plan(f"dp=1,tp=1,pp={ranks},mbs=1,schedule={schedule}" + (",v=2" if schedule == "interleaved" else ""))
                expected = self.losses(plan)
                trace = self.root / "trace.json"
                report = json.loads(self.answer("validate", plan, "--backend", "cuda", "--gpus", "one", "--steps", 1, "--json",
                                                "--trace", trace, played=f"seed={seed + 1}"))
                self.assert_near(report["losses"], expected, 1e-4)
                self.assertEqual({op["op"] for op in report["ops"]} - {"F", "B", "I", "W", "OPTIMIZER_STEP"}, set())
                self.assertEqual(len(report["ranks"]), ranks)
                self.assertIn(f"p={ranks} ", self.answer("trace", "info", trace))
                self.assertIn("played by the host", json.dumps(report))

    def test_the_nano_models_with_heads_of_16(self):
        every = ["gpt-nano", "llama-nano", "mixtral-nano", "deepseek-nano"]
        for model in every if os.environ.get("PLUMB_ALL_PLAYED") else every[2:3]:
            plan = self.plan("dp=1,tp=1,pp=2,mbs=1", model=model, batch=2)
            self.assert_near(self.losses(plan, "--backend", "cuda"), self.losses(plan), 1e-4)

    def test_formats_graphs_and_parts(self):
        plan = self.plan("dp=1,tp=1,pp=2,mbs=1,schedule=1f1b")
        expected = self.losses(plan)
        for options, played in ((["--cuda-graph"], ""), (["--sms", "all"], ""), (["--sms", "3,1"], ""), ([], "green_contexts=0"),
                                ([], "green_contexts=refused"), ([], "multiprocessors=8")):
            self.assert_near(self.losses(plan, "--backend", "cuda", *options, played=played), expected, 1e-4)
        half = self.plan("dp=1,tp=1,pp=2,mbs=1,schedule=1f1b", precision="bf16")
        self.assert_near(self.losses(half, "--backend", "cuda"), self.losses(half), 2e-2)

    @needs_nccl
    def test_gpus_of_their_own_under_nccl(self):
        for layout in ("dp=1,tp=1,pp=2,mbs=1,schedule=zb-v,v=2", "dp=2,tp=1,pp=1,mbs=1,zero=3,schedule=1f1b"):
            plan = self.plan(layout)
            self.assert_near(self.losses(plan, "--backend", "cuda", "--gpus", "each", played="devices=2"), self.losses(plan), 1e-4)

    def test_a_calibration_predicts_what_is_then_measured(self):
        cluster = self.root / "gpu.json"
        self.answer("calibrate", "--backend", "cuda", "--ranks", 2, "--precision", "fp32", "--budget", 1, "-o", cluster)
        self.assertIn("played by the host", json.loads(cluster.read_text())["device"]["name"])
        plan = self.plan("dp=1,tp=1,pp=2,mbs=1,schedule=1f1b", cluster=cluster)
        self.answer("simulate", plan)
        report = json.loads(self.answer("validate", plan, "--backend", "cuda", "--gpus", "one", "--steps", 3, "--json"))
        # All parts share one thread of one host here, which other programs keep busy: times are told, and not judged.
        for side in ("measured_s", "predicted_s"):
            self.assertGreater(report["step_time"][side], 0)
        # The bytes that a micro-batch keeps agree. Tokens, tables, alignments and the lifetimes of messages make the difference.
        for rank in report["ranks"]:
            self.assertLess(abs(rank["measured_peak_bytes"] / rank["predicted_peak_bytes"] - 1), 0.02)

    def test_a_budget_is_kept(self):
        calibrations = [("--backend", "cuda", "--ranks", 2, "--budget", 2, "-o", self.root / "kept.json")]
        for arguments in calibrations + [("--only", "nccl", "--budget", 1, "--json")] * HAS_NCCL:
            self.assertEqual(self.call("calibrate", *arguments, limit_s=30).returncode, 0)

    def assert_slowdown_stands(self, cluster, slowdown):
        """Checks the slowdown if it was measured. The host does products and collectives in turn, and may have computed
        nothing beside a collective."""
        stands = json.loads(cluster.read_text())["device"].get("collective_slowdown", {"value": None})
        if slowdown:
            self.assertAlmostEqual(stands["value"], slowdown, places=6)
            self.assertIn("beside an all-reduce", stands["source"])
        else:
            self.assertIsNone(stands["value"])

    @needs_nccl
    def test_a_calibration_of_gpus_with_a_rank_each_predicts_with_nccl_s_times_and_is_compared(self):
        cluster = self.root / "gpus.json"
        for _ in range(6):  # if this host is too busy for its times to tell anything of messages, the tool says so
            calibrated = self.call("calibrate", "--backend", "cuda", "--gpus", "each", "--precision", "fp32", "--budget", 2, "-o",
                                   cluster, played="devices=2")
            if "larger messages do not take longer" not in calibrated.stderr:
                break
        self.assertEqual(calibrated.returncode, 0, calibrated.stderr)
        written = json.loads(cluster.read_text())
        self.assertEqual((written["devices"], written["node"]["devices"]), (2, 2))
        self.assertIn("NCCL", written["node"]["bandwidth_gb_per_s"]["source"])
        self.assertEqual({(table["collective"], table["ranks"]) for table in written["collective_tables"]},
                         {(name, 2) for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")})
        messages = [sample for sample in written["kernel_samples"] if sample["kernel"] == "message"]
        self.assertGreater(len(messages), 3)
        plan = self.plan("dp=2,tp=1,pp=1,mbs=1,schedule=1f1b", cluster=cluster)
        report = json.loads(self.answer("validate", plan, "--backend", "cuda", "--gpus", "each", "--steps", 2, "--json",
                                        played="devices=2"))
        self.assertEqual(len(report["ranks"]), 1)
        self.assertGreater(report["step_time"]["predicted_s"], 0)
        # Those tables make the prediction: with all-reduces of a second the predicted step takes longer by that.
        for table in written["collective_tables"]:
            table["us"] = [1e6] * len(table["us"])
        cluster.write_text(json.dumps(written))
        slow = json.loads(self.answer("simulate", self.plan("dp=2,tp=1,pp=1,mbs=1,schedule=1f1b", cluster=cluster), "--json"))
        self.assertGreater(slow["step_time_s"], report["step_time"]["predicted_s"] + 0.5)

    @needs_nccl
    def test_products_beside_nccl_are_timed_and_stand_in_the_cluster_that_is_named(self):
        cluster = self.root / "with.json"
        answer = json.loads(self.answer("calibrate", "--only", "nccl", "--budget", 2, "--base", "h100:8", "-o", cluster, "--json",
                                        played="devices=2"))
        self.assertEqual(answer["slowdowns"][0]["collective"], "all_reduce")
        for key in ("compute_alone_s", "compute_beside_s", "collective_alone_s", "collective_beside_s"):
            self.assertGreater(answer["slowdowns"][0][key], 0)
        self.assert_slowdown_stands(cluster, answer["slowdowns"][0]["collective_slowdown"])
        text = self.answer("calibrate", "--only", "nccl", "--budget", 1, "--precision", "fp32", played="devices=2")
        self.assertIn("compute beside", text)
        self.assertIn("fp32", text)
        alone = self.call("calibrate", "--only", "nccl", "--budget", 1, "--base", "h100:8", "-o", cluster)
        self.assertIn("one GPU computes beside no collective", alone.stdout)
        self.assertIn("one GPU has nobody to exchange with", alone.stderr)
        self.assert_slowdown_stands(cluster, None)

    def test_a_calibration_of_gpus_with_a_rank_each_needs_two(self):
        each = ("calibrate", "--backend", "cuda", "--gpus", "each", "-o", self.root / "none.json")
        self.assertIn("1 ranks on 1 GPUs", self.refusal(*each))
        self.assertIn("3 ranks on 2 GPUs", self.refusal(*each, "--ranks", 3, played="devices=2"))
        self.assertIn("--sms", self.refusal(*each, "--sms", "all", played="devices=2"))
        self.assertIn("--base", self.refusal("calibrate", "--only", "nccl", "-o", self.root / "none.json"))
        self.assertIn("--backend cuda", self.refusal("calibrate", "--gpus", "each", "-o", self.root / "none.json"))

    @unittest.skipIf(HAS_NCCL, "libplumb_cuda.so was built with NCCL")
    def test_a_library_without_nccl_says_so(self):
        plan = self.plan("dp=1,tp=1,pp=2,mbs=1,schedule=1f1b")
        for verb in (("run", plan, "--backend", "cuda", "--gpus", "each"), ("calibrate", "--only", "nccl")):
            self.assertIn("was built without NCCL", self.refusal(*verb, played="devices=2"))

    def test_gpus_that_cuda_sees(self):
        self.assertEqual(len(json.loads(self.answer("calibrate", "--only", "gpus", "--json", played="devices=3"))["gpus"]), 3)
        for played, reason in (("driver=0", "no CUDA-capable device is detected"), ("driver=old", "driver version is insufficient")):
            for verb in (("calibrate", "--only", "gpus"), ("run", self.plan("dp=1,tp=1,pp=2,mbs=1"), "--backend", "cuda")):
                self.assertIn(reason, self.refusal(*verb, played=played))

    def test_faults_are_told_once_with_rank_and_action(self):
        plan = self.plan("dp=1,tp=1,pp=2,mbs=1,schedule=1f1b")
        run = ("run", plan, "--backend", "cuda", "--steps", 3)
        self.assertRegex(self.refusal(*run, "--gpus", "one", played="faulty_kernel=200"), r"rank \d, .*illegal memory access")

    @needs_nccl
    def test_faults_of_nccl_are_told_once_with_rank_and_action(self):
        run = ("run", self.plan("dp=1,tp=1,pp=2,mbs=1,schedule=1f1b"), "--backend", "cuda", "--steps", 3)
        self.assertRegex(self.refusal(*run, "--gpus", "each", "--watchdog", 3, played="devices=2,faulty_device=1,nccl_fails_at=5"),
                         r"rank \d, .*rank \d")
        self.assertRegex(self.refusal(*run, "--gpus", "each", "--watchdog", 3, played="devices=2,faulty_device=0,nccl_stalls_at=3"),
                         r"rank \d, .*nothing has come of it")
        self.assertEqual(self.refusal(*run, "--gpus", "each", played="devices=2,faulty_device=1,nccl_signal_at=4,signal=9"),
                         "plumb: rank 1: its process was ended by signal 9")

    def test_memory_that_is_not_there_is_told_before_the_first_step(self):
        plan = self.plan("dp=1,tp=1,pp=2,mbs=1,schedule=1f1b")
        said = self.refusal("run", plan, "--backend", "cuda", "--steps", 3, played="memory_mib=64")
        for kind in ("weights", "gradients", "optimizer"):
            self.assertIn(kind, said)

    def test_gpu_check_tells_a_played_gpu_from_one_that_is_measured(self):
        out = self.root / "checked"
        answer = subprocess.run([sys.executable, SOURCE / "tools" / "gpu_check", "-o", out, "--tool", self.tool, "--only", "version"],
                                capture_output=True, text=True, timeout=60,
                                env={**os.environ, "PLUMB_PLAYED": "", "OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual(answer.returncode, 0, answer.stderr)
        report = json.loads((out / "gpu_check.json").read_text())
        self.assertFalse(report["is_measurement"])
        self.assertEqual(report["gpus"][0]["name"], "a GPU played by the host")


if __name__ == "__main__":
    unittest.main()

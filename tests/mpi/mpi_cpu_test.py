"""Real numerics with a process a rank, started by mpirun on this machine. Skipped (77) without mpirun or MPI."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from launch import LIMIT_S, PLUMB, finished, mpirun, run_tests, started_ranks, wait_until_gone

CLUSTER = {"name": "hand-made", "devices": 8,
           "device": {"name": "cpu", "peak_tflops": {"fp32": 0.05, "bf16": 0.05, "fp16": 0.05}, "memory_gib": 4, "reserved_gib": 0,
                      "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5, "attention_efficiency": 0.5,
                      "memory_efficiency": 0.5, "kernel_fixed_us": 1, "compute_units": 1, "gemm_tile": 1},
           "node": {"devices": 8, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}}
LAYOUTS = {
    "1f1b": (2, "pp=2,mbs=1,schedule=1f1b", ()),
    "gpipe, rendezvous by size": (4, "pp=4,mbs=2,schedule=gpipe", ()),
    "interleaved": (2, "pp=2,v=2,mbs=1,schedule=interleaved", ()),
    "zb-h1": (2, "pp=2,mbs=1,schedule=zb-h1", ()),
    "replicas": (4, "pp=2,dp=2,mbs=1,zero=0,schedule=1f1b", ()),
    "replicas, buckets": (4, "pp=2,dp=2,mbs=1,zero=0,bucket_mib=1,schedule=1f1b", ()),
    "ZeRO 1": (4, "pp=2,dp=2,mbs=1,zero=1,schedule=1f1b", ()),
    "ZeRO 2": (4, "pp=2,dp=2,mbs=1,zero=2,schedule=1f1b", ()),
    "ZeRO 3": (4, "pp=2,dp=2,mbs=1,zero=3,schedule=gpipe", ()),
    "tensor": (4, "pp=2,tp=2,mbs=1,sp=0,schedule=1f1b", ()),
    "sequence": (4, "pp=2,tp=2,mbs=1,sp=1,schedule=1f1b", ()),
    "context, ring": (4, "pp=2,cp=2,mbs=1,schedule=1f1b", ()),
    "context, Ulysses": (4, "pp=2,cp=2,mbs=1,schedule=1f1b", ("--context", "ulysses")),
    "recompute": (2, "pp=2,mbs=1,recompute=full,schedule=1f1b", ()),
    "clipped": (4, "pp=2,dp=2,mbs=1,zero=1,schedule=1f1b", ("--clip-norm", 0.5)),
}


class MpiCpuTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plan(self, layout, *options):
        cluster, plan = self.folder / "cpu.json", self.folder / "plan.json"
        cluster.write_text(json.dumps(CLUSTER))
        degrees = dict(part.split("=") for part in layout.split(","))
        devices = 1
        for degree in ("pp", "dp", "tp", "cp"):
            devices *= int(degrees.get(degree, 1))
        subprocess.run([PLUMB, "plan", "gpt-nano", f"{cluster}:{devices}", "--global-batch", "8", "--seq", "32", "--layout", layout,
                        *map(str, options), "-o", plan], check=True, capture_output=True)
        return plan

    def alone(self, *arguments):
        """The same run with its ranks as threads."""
        done = subprocess.run([PLUMB, *map(str, arguments), "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def together(self, ranks, *arguments):
        code, out, err = finished(mpirun(ranks, *arguments, "--json"))
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_losses_are_bitwise_those_of_threads(self):
        for name, (ranks, layout, options) in LAYOUTS.items():
            with self.subTest(name):
                plan = self.plan(layout)
                threads = self.alone("run", plan, "--steps", 3, *options)
                processes = self.together(ranks, "run", plan, "--steps", 3, *options)
                for key in ("losses", "weight_bytes", "gradient_bytes", "optimizer_bytes"):
                    self.assertEqual(processes[key], threads[key])
                self.assertEqual(len(processes["step_times_s"]), 3)

    def test_sixteen_bits_and_other_networks(self):
        plan = self.plan("pp=2,dp=2,mbs=1,zero=1,schedule=1f1b", "--precision", "fp16")
        threads, processes = self.alone("run", plan, "--steps", 4), self.together(4, "run", plan, "--steps", 4)
        self.assertEqual((processes["losses"], processes["loss_scales"]), (threads["losses"], threads["loss_scales"]))
        network = ("run", "mlp", "--schedule", "zb-h1", "-p", 4, "-m", 4, "--split", "parameters", "--steps", 3)
        self.assertEqual(self.together(4, *network)["losses"], self.alone(*network)["losses"])

    def test_a_baseline_is_computed_by_the_first_process(self):
        answer = self.together(2, "run", self.plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 3, "--baseline")
        for own, alone in zip(answer["losses"], answer["baseline_losses"], strict=True):
            self.assertAlmostEqual(own, alone, delta=1e-4 * alone)

    def test_validation_compares_processes_with_the_prediction(self):
        lanes = self.folder / "lanes.json"
        answer = self.together(2, "validate", self.plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 3, "--lanes", lanes)
        self.assertEqual(answer["steps"], 3)
        self.assertTrue(all(rank["measured_peak_bytes"] > 0 for rank in answer["ranks"]))
        self.assertGreater(lanes.stat().st_size, 0)

    def test_a_killed_run_goes_on_from_its_checkpoint_also_in_another_layout_or_as_threads(self):
        plan = self.plan("pp=2,dp=2,mbs=1,zero=1,schedule=1f1b")
        whole = self.alone("run", plan, "--steps", 60)["losses"]
        folder = self.folder / "state"
        arguments = ("run", plan, "--checkpoint-dir", folder, "--checkpoint-every", 1)
        process = mpirun(4, *arguments, "--steps", 60)
        deadline = time.monotonic() + LIMIT_S
        while not (folder / "checkpoint.plumb").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True)
        ranks = [int(line) for line in found.stdout.split()]
        os.kill(ranks[2], signal.SIGKILL)
        self.assertNotEqual(finished(process)[0], 0)
        self.assertFalse(wait_until_gone(ranks))
        answer = self.together(4, *arguments, "--steps", 60, "--resume")
        self.assertGreaterEqual(answer["first_step"], 1)
        self.assertEqual(answer["losses"], whole[answer["first_step"]:])
        self.assertEqual([path.name for path in folder.iterdir()], ["checkpoint.plumb"])
        longer = self.alone("run", plan, "--steps", 62)["losses"][60:]
        other = self.plan("pp=2,mbs=1,schedule=gpipe")
        resumed = self.together(2, "run", other, "--steps", 62, "--checkpoint-dir", folder, "--resume")["losses"]
        for one, another in zip(resumed, longer, strict=True):
            self.assertAlmostEqual(one, another, delta=1e-4 * another)

    def test_a_rank_that_stalls_is_named_and_what_was_done_is_readable(self):
        trace = self.folder / "trace.json"
        process = mpirun(2, "run", self.plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 100000, "--watchdog", 2, "--trace", trace)
        stalled = started_ranks(process, 2)[1]
        os.kill(stalled, signal.SIGSTOP)
        try:
            code, _, err = finished(process)
        finally:
            if pathlib.Path(f"/proc/{stalled}").exists():
                os.kill(stalled, signal.SIGKILL)
        self.assertNotEqual(code, 0)
        self.assertIn("rank 0, action", err)
        self.assertIn("from rank 1", err)
        partial = self.folder / "trace.rank0.json"
        info = json.loads(subprocess.run([PLUMB, "trace", "info", partial, "--json"], capture_output=True, text=True,
                                         check=True).stdout)
        self.assertEqual(info["source"], "measured")

    def test_ranks_with_different_plans_texts_or_numbers_do_not_start(self):
        plan = self.plan("pp=2,mbs=1,schedule=1f1b")
        same = [PLUMB, "run", str(plan), "--steps", "2"]
        for other in ([*same, "--seed", "5"], [*same[:-1], "3"], [*same, "--clip-norm", "1"]):
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "1", *same, ":", "-n", "1", *other]
            code, _, err = finished(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            self.assertNotEqual(code, 0)
            self.assertIn("different plans", err)

    def test_what_processes_cannot_do_is_refused_in_one_sentence(self):
        plan = self.plan("pp=2,mbs=1,schedule=1f1b")
        code, _, err = finished(mpirun(3, "run", plan))
        self.assertNotEqual(code, 0)
        self.assertEqual(len([line for line in err.splitlines() if line.startswith("plumb: ")]), 1, err)
        self.assertIn("mpirun -n 2", err)
        code, _, err = finished(mpirun(4, "run", "mlp", "--schedule", "bpipe", "-p", 4, "-m", 8))
        self.assertNotEqual(code, 0)
        self.assertIn("without mpirun", err)

    def test_a_full_disk_under_the_trace_ends_all_of_them_and_leaves_nothing_behind(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no small file system to be had: {mounted.stderr.strip()}")
        try:
            plan = self.plan("pp=2,mbs=1,schedule=1f1b")
            code, _, err = finished(mpirun(2, "run", plan, "--steps", 2, "--trace", disk / "trace.json"))
            self.assertNotEqual(code, 0)
            self.assertIn("No space left", err)
            self.assertEqual(list(disk.iterdir()), [])
        finally:
            subprocess.run(["umount", disk], check=True)


if __name__ == "__main__":
    run_tests()

"""Real numerics with a process a rank, started by mpirun on this machine. Skipped (77) without mpirun or MPI."""

import os
import signal
import subprocess
import time

from launch import (LIMIT_S, PLUMB, MpiTestCase, alone, finished, mpirun, mpirun_each, run_tests, started_ranks, stopped,
                    wait_until_gone)

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
    "ZeRO 1 in pairs": (4, "dp=4,mbs=1,zero=1,shard=2", ("--clip-norm", 0.5)),
    "ZeRO 3 in pairs": (4, "dp=4,mbs=1,zero=3,shard=2,schedule=gpipe", ()),
    "clipped": (4, "pp=2,dp=2,mbs=1,zero=1,schedule=1f1b", ("--clip-norm", 0.5)),
}


class MpiCpuTest(MpiTestCase):
    def test_losses_are_bitwise_those_of_threads(self):
        for name, (ranks, layout, options) in LAYOUTS.items():
            with self.subTest(name):
                plan = self.cpu_plan(layout)
                threads = alone("run", plan, "--steps", 3, *options)
                processes = self.together(ranks, "run", plan, "--steps", 3, *options)
                for key in ("losses", "weight_bytes", "gradient_bytes", "optimizer_bytes"):
                    self.assertEqual(processes[key], threads[key])
                self.assertEqual(len(processes["step_times_s"]), 3)

    def test_sixteen_bits_and_other_networks(self):
        plan = self.cpu_plan("pp=2,dp=2,mbs=1,zero=1,schedule=1f1b", "--precision", "fp16")
        threads, processes = alone("run", plan, "--steps", 4), self.together(4, "run", plan, "--steps", 4)
        self.assertEqual((processes["losses"], processes["loss_scales"]), (threads["losses"], threads["loss_scales"]))
        network = ("run", "mlp", "--schedule", "zb-h1", "-p", 4, "-m", 4, "--split", "parameters", "--steps", 3)
        self.assertEqual(self.together(4, *network)["losses"], alone(*network)["losses"])

    def test_a_baseline_is_computed_by_the_first_process(self):
        answer = self.together(2, "run", self.cpu_plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 3, "--baseline")
        for own, alone in zip(answer["losses"], answer["baseline_losses"], strict=True):
            self.assertAlmostEqual(own, alone, delta=1e-4 * alone)

    def test_validation_compares_processes_with_the_prediction(self):
        lanes = self.folder / "lanes.json"
        answer = self.together(2, "validate", self.cpu_plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 3, "--lanes", lanes)
        self.assertEqual(answer["steps"], 3)
        self.assertTrue(all(rank["measured_peak_bytes"] > 0 for rank in answer["ranks"]))
        self.assertGreater(lanes.stat().st_size, 0)

    def test_a_killed_run_goes_on_from_its_checkpoint_also_in_another_layout_or_as_threads(self):
        plan = self.cpu_plan("pp=2,dp=2,mbs=1,zero=1,schedule=1f1b")
        whole = alone("run", plan, "--steps", 60)["losses"]
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
        longer = alone("run", plan, "--steps", 62)["losses"][60:]
        other = self.cpu_plan("pp=2,mbs=1,schedule=gpipe")
        resumed = self.together(2, "run", other, "--steps", 62, "--checkpoint-dir", folder, "--resume")["losses"]
        for one, another in zip(resumed, longer, strict=True):
            self.assertAlmostEqual(one, another, delta=1e-4 * another)

    def test_a_rank_that_stalls_is_named_and_what_was_done_is_readable(self):
        trace = self.folder / "trace.json"
        process = mpirun(2, "run", self.cpu_plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 100000, "--watchdog", 2, "--trace", trace)
        with stopped(started_ranks(process, 2)[1]):
            code, _, err = finished(process)
        self.assertNotEqual(code, 0)
        # A rank is stopped within a step, or between two, where all ranks meet.
        self.assertRegex(err, r"rank 0, (action .*from rank 1|before step \d+: it waited for rank 1)")
        self.assertEqual(alone("trace", "info", self.folder / "trace.rank0.json")["source"], "measured")

    def test_ranks_with_different_plans_texts_or_numbers_do_not_start(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        same = [PLUMB, "run", plan, "--steps", 2]
        for other in ([*same, "--seed", 5], [*same[:-1], 3], [*same, "--clip-norm", 1]):
            self.refused(mpirun_each(["-n", 1, *same], ["-n", 1, *other]), "different plans")

    def test_what_processes_cannot_do_is_refused_in_one_sentence(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        self.refused(mpirun(3, "run", plan), "mpirun -n 2")
        self.refused(mpirun(4, "run", "mlp", "--schedule", "bpipe", "-p", 4, "-m", 8), "without mpirun")


if __name__ == "__main__":
    run_tests()

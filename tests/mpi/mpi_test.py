"""Replays by the clock with a process a rank, started by mpirun on this machine. Skipped (77) without mpirun or MPI."""

import json
import os
import signal
import subprocess

from launch import PLUMB, MpiTestCase, alone, finished, mpirun, mpirun_each, run_tests, started_ranks, stopped, wait_until_gone

SCHEDULES = {
    "gpipe": ("f=10,b=20,unit=ms", ()),
    "1f1b": ("f=10,b=20,unit=ms", ()),
    "interleaved": ("f=5,b=10,unit=ms", ("-v", 2)),
    "zb-h1": ("f=10,i=10,w=10,unit=ms", ()),
}


class MpiTest(MpiTestCase):
    def test_schedules_run_over_processes_as_they_do_over_threads(self):
        for name, (costs, numbers) in SCHEDULES.items():
            with self.subTest(name):
                options = ("--backend", "timed", "--schedule", name, "-p", 4, "-m", 4, *numbers, "--costs", costs, "--steps", 2)
                answer = self.together(4, "validate", *options)
                self.assertGreaterEqual(answer["step_time"]["measured_s"], answer["step_time"]["predicted_s"])
                threads = alone("validate", *options)
                count = lambda ops: [(op["op"], op["stage"], op["count"]) for op in ops]
                self.assertEqual(count(answer["ops"]), count(threads["ops"]))

    def test_messages_are_whole_and_in_order(self):
        """Messages are real bytes with a checksum in each header: a wrong or misplaced one ends the run."""
        trace = self.folder / "trace.json"
        code, _, err = finished(
            mpirun(3, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 3, "-m", 6, "--steps", 2, "--trace", trace,
                   "--costs", "f=2,b=2,mib=3,gb_per_s=1,unit=ms", "--sends", "rendezvous"))
        self.assertEqual(code, 0, err)
        self.assertEqual(alone("trace", "info", trace)["source"], "measured")

    def test_clocks_of_hosts_are_set_against_each_other(self):
        """A time namespace gives a rank a clock that is hours off, as another host's is."""
        other_host = ["unshare", "--time", "--monotonic", "7200"]
        if subprocess.run([*other_host, "true"], capture_output=True).returncode != 0:
            self.skipTest("time namespaces are not allowed here")
        trace = self.folder / "trace.json"
        validate = [PLUMB, "validate", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 4, "--costs", "f=10,b=20,unit=ms",
                    "--steps", 3, "--trace", trace, "--json"]
        for groups in ((["-n", 1, *validate], ["-n", 1, *other_host, *validate]),
                       (["-n", 1, *other_host, *validate], ["-n", 1, *validate])):
            code, out, err = finished(mpirun_each(*groups))
            self.assertEqual(code, 0, err)
            answer = json.loads(out)
            step = answer["step_time"]
            # No action starts before its input has come, and the step lasts about as long as predicted.
            self.assertGreaterEqual(step["measured_s"], step["predicted_s"])
            self.assertLess(step["measured_s"], step["predicted_s"] + 1)
            for rank in answer["ranks"]:
                self.assertLess(rank["idle"]["measured_s"], 1)

    def test_a_link_that_is_measured_between_processes_becomes_the_cluster_s(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        before = alone("simulate", plan)["step_time_s"]
        cluster, linked = self.folder / "cpu.json", self.folder / "linked.json"
        code, _, err = finished(mpirun(2, "calibrate", "--only", "transport", "--base", cluster, "-o", linked))
        self.assertEqual(code, 0, err)
        document = json.loads(linked.read_text())
        self.assertEqual(document["devices"], json.loads(cluster.read_text())["devices"])
        self.assertIn("messages between two processes", document["node"]["latency_us"]["source"])
        messages = [sample for sample in document["kernel_samples"] if sample["kernel"] == "message"]
        self.assertGreaterEqual(len(messages), 8)
        self.assertTrue(all(sample["fastest_s"] <= sample["median_s"] <= sample["slowest_s"] for sample in messages))
        # The made-up cluster has 5 us. A plan on the measured cluster has longer hops, and so has the prediction of both
        # backends.
        self.assertGreater(document["node"]["latency_us"]["value"], 5)
        on_linked = self.folder / "linked-plan.json"
        alone("plan", "gpt-nano", f"{linked}:2", "--global-batch", 8, "--seq", 32, "--layout", "pp=2,mbs=1,schedule=1f1b",
              "-o", on_linked)
        self.assertGreater(alone("simulate", on_linked)["step_time_s"], before)
        for backend in ("cpu", "timed"):
            predicted = self.together(2, "validate", on_linked, "--backend", backend, "--steps", 1)["step_time"]["predicted_s"]
            self.assertGreater(predicted, before)
        self.refused(mpirun(2, "calibrate", "--only", "transport", "--base", cluster), "--output")

    def test_as_many_ranks_as_the_schedule_has(self):
        self.refused(mpirun(2, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 3, "-m", 3, "--costs", "f=1,b=1,unit=ms"),
                     "mpirun -n 3")

    def test_ranks_with_different_plans_do_not_start(self):
        run = lambda costs: ["-n", 1, PLUMB, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", costs]
        self.refused(mpirun_each(run("f=1,b=1,unit=ms"), run("f=1,b=2,unit=ms")), "different plans")

    def test_a_host_without_the_tool_is_named(self):
        """The words are mpirun's own, since no plumb has started that could speak."""
        here = ["-n", 1, PLUMB, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", "f=1,b=1,unit=ms"]
        gone = self.folder / "plumb"
        code, _, err = finished(mpirun_each(here, ["-n", 1, gone, *here[3:]]))
        self.assertNotEqual(code, 0)
        self.assertIn(str(gone), err)
        self.assertIn("Node:", err)

    def test_a_rank_that_is_killed_ends_all_of_them(self):
        process = mpirun(3, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 3, "-m", 50, "--steps", 20, "--costs",
                         "f=20,b=40,unit=ms")
        ranks = started_ranks(process, 3)
        os.kill(ranks[1], signal.SIGKILL)
        code, _, _ = finished(process)
        self.assertNotEqual(code, 0)
        self.assertFalse(wait_until_gone(ranks))

    def test_a_rank_that_stalls_is_named_by_one_that_waits_for_it(self):
        process = mpirun(2, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 50, "--steps", 20, "--costs",
                         "f=20,b=40,unit=ms", "--watchdog", 2)
        with stopped(started_ranks(process, 2)[1]):
            code, _, err = finished(process)
        self.assertNotEqual(code, 0)
        self.assertIn("rank", err)
        self.assertIn("for 2 s nothing", err)


if __name__ == "__main__":
    run_tests()

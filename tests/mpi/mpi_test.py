"""Replays by the clock with a process a rank, started by mpirun on this machine. Skipped (77) without mpirun or MPI."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from launch import PLUMB, finished, mpirun, run_tests, started_ranks, wait_until_gone

SCHEDULES = {
    "gpipe": ("f=10,b=20,unit=ms", ()),
    "1f1b": ("f=10,b=20,unit=ms", ()),
    "interleaved": ("f=5,b=10,unit=ms", ("-v", 2)),
    "zb-h1": ("f=10,i=10,w=10,unit=ms", ()),
}


class MpiTest(unittest.TestCase):
    def test_schedules_run_over_processes_as_they_do_over_threads(self):
        for name, (costs, numbers) in SCHEDULES.items():
            with self.subTest(name):
                options = ("--backend", "timed", "--schedule", name, "-p", 4, "-m", 4, *numbers, "--costs", costs, "--steps", 2)
                code, out, err = finished(mpirun(4, "validate", *options, "--json"))
                self.assertEqual(code, 0, err)
                answer = json.loads(out)
                self.assertGreaterEqual(answer["step_time"]["measured_s"], answer["step_time"]["predicted_s"])
                threads = json.loads(subprocess.run([PLUMB, "validate", *map(str, options), "--json"], capture_output=True,
                                                    text=True, check=True).stdout)
                count = lambda ops: [(op["op"], op["stage"], op["count"]) for op in ops]
                self.assertEqual(count(answer["ops"]), count(threads["ops"]))

    def test_messages_are_whole_and_in_order(self):
        """Real bytes, and a checksum in each header: a wrong or misplaced message ends the run."""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.json"
            code, _, err = finished(
                mpirun(3, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 3, "-m", 6, "--steps", 2, "--trace", trace,
                       "--costs", "f=2,b=2,mib=3,gb_per_s=1,unit=ms", "--sends", "rendezvous"))
            self.assertEqual(code, 0, err)
            info = json.loads(subprocess.run([PLUMB, "trace", "info", trace, "--json"], capture_output=True, text=True,
                                             check=True).stdout)
            self.assertEqual(info["source"], "measured")

    def test_as_many_ranks_as_the_schedule_has(self):
        code, _, err = finished(
            mpirun(2, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 3, "-m", 3, "--costs", "f=1,b=1,unit=ms"))
        self.assertNotEqual(code, 0)
        said = [line for line in err.splitlines() if line.startswith("plumb: ")]
        self.assertEqual(len(said), 1, err)
        self.assertIn("mpirun -n 3", said[0])

    def test_ranks_with_different_plans_do_not_start(self):
        run = lambda costs: [PLUMB, "run", "--backend", "timed", "--schedule", "1f1b", "-p", "2", "-m", "2", "--costs", costs]
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "1", *run("f=1,b=1,unit=ms"), ":", "-n", "1",
                   *run("f=1,b=2,unit=ms")]
        code, _, err = finished(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.assertNotEqual(code, 0)
        self.assertIn("different plans", err)

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
        stalled = started_ranks(process, 2)[1]
        os.kill(stalled, signal.SIGSTOP)
        try:
            code, _, err = finished(process)
        finally:
            if pathlib.Path(f"/proc/{stalled}").exists():
                os.kill(stalled, signal.SIGKILL)
        self.assertNotEqual(code, 0)
        self.assertIn("rank", err)
        self.assertIn("for 2 s nothing", err)


if __name__ == "__main__":
    run_tests()

"""Ranks that srun starts, under a Slurm on this machine that the test starts: munged, slurmctld and slurmd.

Skipped (77) where Slurm, munge, mpirun or their PMIx plugin are not installed, or who runs it is not root.
"""

import json
import os
import signal
import subprocess
import sys
import time

import slurm
from launch import LIMIT_S, MPIRUN, PLUMB, MpiTestCase, alone, finished, run_tests, said, wait_until_gone

TIMED = ("validate", "--backend", "timed", "--schedule", "1f1b", "-p", 4, "-m", 4, "--costs", "f=20,b=40,c=0.05,unit=ms")


def srun(*arguments):
    return subprocess.Popen(["srun", "--mpi=pmix", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


class SlurmTest(MpiTestCase):
    def test_ranks_are_held_against_the_prediction(self):
        code, out, err = finished(srun("-n", 4, PLUMB, *TIMED, "--steps", 2))
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("predicted before"), 0)
        self.assertIn("step time (median of 2)", out)
        self.assertIn("4 processes", out)

    def test_losses_are_bitwise_those_of_threads(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        code, out, err = finished(srun("-n", 2, PLUMB, "run", plan, "--steps", 2, "--json"))
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["losses"], alone("run", plan, "--steps", 2)["losses"])

    def test_too_few_ranks_are_refused_in_a_sentence(self):
        code, _, err = finished(srun("-n", 3, PLUMB, *TIMED))
        self.assertNotEqual(code, 0)
        self.assertEqual(len(said(err)), 1, err)
        self.assertIn("the schedule has 4 ranks and 3 were started", said(err)[0])

    def test_a_killed_rank_ends_the_others(self):
        process = srun("-n", 4, "--kill-on-bad-exit=1", "--wait=5", PLUMB, *TIMED, "--steps", 2000, "--watchdog", 5)
        deadline = time.monotonic() + LIMIT_S
        ranks = []
        while len(ranks) < 4 and time.monotonic() < deadline:
            time.sleep(0.2)
            ranks = [int(pid) for pid in subprocess.run(["pgrep", "-f", "steps 2000 --watchdog 5"], capture_output=True,
                                                        text=True).stdout.split() if
                     os.path.basename(os.readlink(f"/proc/{pid}/exe")) == os.path.basename(PLUMB)]
        time.sleep(1)
        os.kill(ranks[1], signal.SIGKILL)
        self.assertNotEqual(finished(process)[0], 0)
        self.assertFalse(wait_until_gone(ranks))

    def test_mpirun_takes_as_many_ranks_as_an_allocation_has(self):
        command = ["salloc", "-Q", "-n", "4", *MPIRUN, PLUMB, *map(str, TIMED), "--steps", "2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 processes", done.stdout)


if __name__ == "__main__":
    with slurm.running() as why_not:
        if why_not:
            print(f"skipped: {why_not}")
            sys.exit(77)
        run_tests()

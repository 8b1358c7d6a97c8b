#!/usr/bin/env python3
"""A process a rank on the played CUDA and NCCL, as on a GPU: ranks that meet in a folder or by MPI, what is said when one of
them is killed, stopped, stalled or fails, and tools/nccl_check.

usage: played_processes_test.py PLUMB FOLDER    PLUMB: the tool; FOLDER: of libplumb_cuda.so and what it is played on"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from played_tool import PLUMB, SOURCE, PlayedTool, needs_nccl

HAS_MPI = shutil.which("mpirun") and "MPI   built in" in subprocess.run([PLUMB, "--version"], capture_output=True, text=True).stdout
needs_mpi = unittest.skipUnless(HAS_MPI, "there is no mpirun, or no MPI in the tool")
PIPELINE = "dp=1,tp=1,pp=2,mbs=1,schedule=1f1b"
ERROR = "remote process exited or there was a network error"


@needs_nccl
class PlayedProcesses(PlayedTool):
    def setUp(self):
        super().setUp()
        self.board = self.root / "board"
        shutil.rmtree(self.board, ignore_errors=True)

    def environment(self, **more):
        return {**os.environ, "PLUMB_PLAYED_FAULTS": str(self.faults), "OPENBLAS_NUM_THREADS": "1", **more}

    def start(self, rank, plan, *options, watchdog=20, **environment):
        """A rank that meets the others on the board."""
        command = [self.tool, "run", plan, "--backend", "cuda", "--steps", 3, "--watchdog", watchdog, "--board", self.board, "--rank", rank,
                   "--json", *options]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment(**environment))
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()

    def on_one_gpu(self, plan, *played, watchdog=20):
        """Two ranks that NCCL takes to be on hosts of their own, so that it uses sockets."""
        return [self.start(rank, plan, watchdog=watchdog, PLUMB_PLAYED=one, NCCL_HOSTID=f"rank{rank}") for rank, one in enumerate(played)]

    def results(self, processes):
        """Returns [(exit status, stdout, the tool's messages)]."""
        ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]
        return [(status, out, [line for line in err.splitlines() if line.startswith("plumb: ")]) for out, err, status in ended]

    def only_fault(self, processes, statuses=(1, 1)):
        """Returns the message of one of them, while the others said nothing."""
        results = self.results(processes)
        self.assertEqual(tuple(status for status, _, _ in results), statuses, results)
        self.assertEqual(sum(len(said) for _, _, said in results), 1, results)
        return next(said[0] for _, _, said in results if said)

    def test_ranks_that_meet_in_a_folder_train_to_the_cpu_s_losses(self):
        for layout in (PIPELINE, "dp=1,tp=1,pp=2,mbs=1,schedule=zb-v,v=2", "dp=2,tp=1,pp=1,mbs=1,zero=3,schedule=1f1b"):
            with self.subTest(layout=layout):
                plan = self.plan(layout)
                (status, out, said), other = self.results(self.on_one_gpu(plan, "seed=4", "seed=5"))
                self.assertEqual((status, said), (0, []))
                self.assertEqual(other, (0, "", []))  # only the first rank reports
                self.assert_near(json.loads(out)["losses"], self.losses(plan), 1e-4)
                self.assertEqual(list(self.board.iterdir()), [])

    def test_a_rank_that_is_killed_is_missed_by_the_one_that_waits_for_it(self):
        """Over sockets NCCL notices it. Between GPUs of one host it does not, and the watchdog reports it."""
        plan = self.plan(PIPELINE)
        killed = "faulty_device=0,nccl_signal_at=5,signal=9"
        said = self.only_fault(self.on_one_gpu(plan, "", killed), (1, -9))
        self.assertRegex(said, r"^plumb: rank 0, \d(SEND_[FB]|RECV_[FB])\d.* rank 1 \(.*communicator \d.*" + ERROR + ".* completed")
        left = {path.name for path in self.board.iterdir()}
        self.assertTrue(any(name.endswith(".fault") for name in left), left)
        ranks = [self.start(rank, plan, watchdog=2.5, PLUMB_PLAYED=one) for rank, one in enumerate((killed + ",devices=2", "devices=2"))]
        said = self.only_fault(ranks, (-9, 1))
        self.assertRegex(said, r"^plumb: rank 1, \dSEND_[FB]\d.* rank 0 \(.*communicator \d.*for 2.5 s nothing has come of it.* completed")
        self.assertFalse(left & {path.name for path in self.board.iterdir() if path.name.endswith(".fault")})
        for status, _, said in self.results(self.on_one_gpu(plan, "", "")):  # in the same folder
            self.assertEqual((status, said), (0, []))
        self.assertEqual(list(self.board.iterdir()), [])

    def test_a_rank_that_is_stopped_ends_when_it_goes_on(self):
        first, other = self.on_one_gpu(self.plan(PIPELINE), "", f"faulty_device=0,nccl_signal_at=4,signal={signal.SIGSTOP.value}", watchdog=2.5)
        self.assertIn("for 2.5 s nothing has come of it", self.only_fault([first], (1,)))
        self.assertIsNone(other.poll())
        other.send_signal(signal.SIGCONT)
        (status, _, said), = self.results([other])
        self.assertEqual((status, said), (1, []))

    def test_a_call_that_stalls_is_told_once(self):
        said = self.only_fault(self.on_one_gpu(self.plan(PIPELINE), "", "faulty_device=0,nccl_stalls_at=5", watchdog=2.5))
        self.assertRegex(said, r"^plumb: rank \d, .* rank \d \(.*communicator \d.*for 2.5 s nothing has come of it")

    def test_who_has_the_fault_says_it_before_the_others_see_that_it_is_gone(self):
        plan = self.plan("dp=2,tp=1,pp=1,mbs=1,zero=3,schedule=1f1b")
        self.assertRegex(self.only_fault(self.on_one_gpu(plan, "", "faulty_device=0,nccl_fails_at=3")), "^plumb: rank 1, .*" + ERROR)
        self.assertRegex(self.only_fault(self.on_one_gpu(plan, "faulty_kernel=200", "")), "^plumb: rank 0, .*illegal memory access")

    def test_what_differs_is_told_before_nccl_is_asked_for_anything(self):
        plan = self.plan(PIPELINE)
        ranks = [self.start(0, plan), self.start(1, plan, "--seed", 5)]
        self.assertIn("the ranks were given different plans: rank 1 has another than rank 0", self.only_fault(ranks))
        ranks = [self.start(rank, plan) for rank in (0, 1)]
        self.assertRegex(self.only_fault(ranks), "ranks 0 and 1 are on one GPU, 0000:01:00.0 of host .*NCCL_HOSTID")
        ranks = [self.start(rank, plan, PLUMB_PLAYED="devices=2", CUDA_VISIBLE_DEVICES=str(rank)) for rank in (0, 1)]
        self.assertEqual([status for status, _, _ in self.results(ranks)], [0, 0])

    def test_two_ranks_on_one_gpu_as_nccl_check_starts_them(self):
        began = time.monotonic()
        for played, status in (("", 0), ("faulty_device=0,nccl_fails_at=3", 1)):
            answer = subprocess.run([sys.executable, SOURCE / "tools" / "nccl_check", self.tool, "-o", self.root / "pair", "--one-gpu", "--limit", "20"],
                                    capture_output=True, text=True, timeout=100, env=self.environment(PLUMB_PLAYED=played))
            self.assertEqual(answer.returncode, status, answer.stderr)
            rows = json.loads(answer.stdout)
            self.assertEqual([row["status"] for row in rows], ["failed" if played else "passed"] * 2)
            if played:
                self.assertIn(ERROR, rows[0]["why"])
        self.assertLess(time.monotonic() - began, 60)  # a rank that hangs is ended by its limit

    def mpirun(self, *ranks, watchdog=20):
        """Ranks of a plan with a GPU each, as (plan, PLUMB_PLAYED), or options behind them."""
        groups = []
        for plan, played, *options in ranks:
            groups += [":"] * bool(groups) + ["-n", 1, "-x", f"PLUMB_PLAYED=devices=2{played}", self.tool, "run", plan, "--backend", "cuda",
                                              "--steps", 3, "--json", "--watchdog", watchdog, *options]
        return subprocess.Popen([str(word) for word in ["mpirun", "--allow-run-as-root", "--oversubscribe", *groups]], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.environment())

    @needs_mpi
    def test_ranks_of_mpirun_train_to_the_cpu_s_losses(self):
        for layout in ("dp=1,tp=1,pp=2,mbs=1,schedule=zb-v,v=2", "dp=2,tp=1,pp=1,mbs=1,zero=3,schedule=1f1b"):
            plan = self.plan(layout)
            (status, out, said), = self.results([self.mpirun((plan, ""), (plan, ",seed=3"))])
            self.assertEqual((status, said), (0, []))
            self.assert_near(json.loads(out)["losses"], self.losses(plan), 1e-4)

    @needs_mpi
    def test_faults_of_ranks_of_mpirun_are_told_once(self):
        plan = self.plan(PIPELINE)
        for other, expected in (((plan, ",faulty_device=1,nccl_fails_at=4"), r"rank 1, \dSEND_[FB]\d: .*communicator \d.*" + ERROR),
                                ((plan, ",faulty_device=1,nccl_stalls_at=4"), r"rank \d, .*for 2.5 s nothing has come of it"),
                                ((plan, "", "--seed", 5), "the ranks were given different plans: rank 1 has another than rank 0")):
            self.assertRegex(self.only_fault([self.mpirun((plan, ""), other, watchdog=2.5)], (1,)), "^plumb: " + expected)


if __name__ == "__main__":
    unittest.main()

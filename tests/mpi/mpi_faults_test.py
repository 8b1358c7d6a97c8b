"""Faults of real processes: one rank says a sentence, all end, and the last checkpoint goes on. Skipped (77) without
mpirun or MPI.

    mpi_faults_test.py PLUMB FAULTS      FAULTS: the library of faults.cpp, preloaded into the ranks
"""

import os
import subprocess
import sys

from launch import MpiTestCase, alone, finished, left_behind, mpirun, run_tests, said

FAULTS = os.path.abspath(sys.argv[2])
STEPS = 12


class MpiFaultsTest(MpiTestCase):
    def faulty(self, ranks, fault, *arguments):
        return mpirun(ranks, *arguments, variables=(f"LD_PRELOAD={FAULTS}", f"PLUMB_TEST_FAULT={fault}"))

    def goes_on(self, ranks, plan, folder, whole):
        """Goes on from the last checkpoint, and requires the losses of a run without a fault."""
        answer = self.together(ranks, "run", plan, "--steps", STEPS, "--checkpoint-dir", folder, "--resume")
        self.assertGreaterEqual(answer["first_step"], 1)
        self.assertEqual(answer["losses"], whole[answer["first_step"]:])

    def failing_run(self, ranks, layout, fault, *parts):
        """Runs a training of many steps that must fail under way, with one sentence with these parts."""
        plan, folder = self.cpu_plan(layout), self.folder / "state"
        whole = alone("run", plan, "--steps", STEPS)["losses"]
        trace = self.folder / "trace.json"
        sentence = self.refused(self.faulty(ranks, fault, "run", plan, "--steps", STEPS, "--watchdog", 20, "--checkpoint-dir", folder,
                                            "--checkpoint-every", 1, "--trace", trace), *parts)
        self.assertRegex(sentence, r"^plumb: rank \d+.*, (action \d+ \(\d+\w+\)|before step \d+): ")
        self.assertEqual(left_behind(self.folder), [])
        partial = list(self.folder.glob("trace.rank*.json"))
        self.assertTrue(partial)
        for path in partial:
            self.assertEqual(alone("trace", "info", path)["source"], "measured")
        self.goes_on(ranks, plan, folder, whole)

    def test_a_message_that_the_network_changes_is_told_with_rank_action_and_peer(self):
        self.failing_run(2, "pp=2,mbs=1,schedule=1f1b", "corrupt 0 20 0", "rank 1, action", "activation of stage 0, micro-batch",
                         "from rank 0 to rank 1", "values are not those that were sent")

    def test_so_is_a_gradient(self):
        self.failing_run(2, "pp=2,mbs=1,schedule=gpipe", "corrupt 1 20 1", "rank 0, action", "gradient of stage 1",
                         "from rank 1 to rank 0", "values are not those that were sent")

    def test_so_is_a_part_of_a_collective(self):
        self.failing_run(2, "dp=2,pp=1,mbs=1,zero=0,schedule=1f1b", "collective 1 100", "rank 0", "collective ", "from rank 1",
                         "values are not those that were sent")

    def test_a_loss_that_is_no_number_ends_all_of_them(self):
        self.failing_run(2, "pp=2,mbs=1,schedule=1f1b", "nan 1 2000", "rank ", "the loss of micro-batch", "nan")

    def test_who_never_hears_from_a_rank_outside_its_actions_says_so(self):
        """A link is cut while the ranks compare their clocks, or gather their measurements. The other rank waits, and the
        rank that hangs may notice in the same moment that nothing comes for it either."""
        for number in (1, 2):
            code, _, err = finished(self.faulty(2, f"hang 1 {number}", "run", self.cpu_plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 2,
                                                "--watchdog", 3))
            self.assertNotEqual(code, 0)
            self.assertIn(len(said(err)), (1, 2), err)
            for sentence in said(err):
                self.assertRegex(sentence, "rank (0, outside its actions, waited for rank 1|1, outside its actions, waited for rank 0), and for 3 s")
            self.assertEqual(left_behind(self.folder), [])

    def test_a_full_disk_under_the_trace_ends_all_of_them_and_leaves_nothing_behind(self):
        disk, folder = self.folder / "disk", self.folder / "state"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no small file system to be had: {mounted.stderr.strip()}")
        try:
            plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
            whole = alone("run", plan, "--steps", STEPS)["losses"]
            self.refused(mpirun(2, "run", plan, "--steps", STEPS // 2, "--checkpoint-dir", folder, "--checkpoint-every", 1, "--trace",
                                disk / "trace.json"), "No space left")
            self.assertEqual(list(disk.iterdir()), [])
            self.assertEqual(left_behind(self.folder), [])
            self.goes_on(2, plan, folder, whole)
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_without_a_fault_the_preloaded_library_changes_nothing(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        code, _, err = finished(self.faulty(2, "none", "run", plan, "--steps", 2))
        self.assertEqual(code, 0, err)
        self.assertEqual(said(err), [])


if __name__ == "__main__":
    run_tests()

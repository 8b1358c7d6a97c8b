"""Ranks with a machine and a process each that meet by MPI: their losses, and their error for different plans. Skipped (77)
without mpirun or MPI.

    mpi_board_test.py PLUMB LINKED_RANKS
"""

import os
import subprocess
import sys

from launch import MPIRUN, MpiTestCase, run_tests

PROGRAM = os.path.abspath(sys.argv[2])


class MpiBoardTest(MpiTestCase):
    def ranks(self, *arguments):
        return subprocess.run([*MPIRUN, "-n", "3", PROGRAM, *arguments], capture_output=True, text=True, timeout=120)

    def test_losses_are_those_of_one_machine(self):
        answer = self.ranks()
        self.assertEqual(answer.returncode, 0, answer.stderr)
        ours, alone = answer.stdout.splitlines()
        self.assertEqual(len(ours.split()), 2)
        self.assertEqual(ours, alone)

    def test_another_plan_is_told_with_its_rank(self):
        answer = self.ranks("99")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("the ranks were given different plans: rank 1 has another than rank 0", answer.stderr)


if __name__ == "__main__":
    run_tests()

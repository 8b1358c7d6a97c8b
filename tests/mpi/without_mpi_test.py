"""A plumb that was built without MPI says one sentence if it is started beside others, by any launcher."""

import os
import subprocess
import sys
import unittest

PLUMB = os.path.abspath(sys.argv[1])
LAUNCHERS = {  # variables by which each launcher tells that it has started two ranks
    "Open MPI": {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"},
    "Slurm": {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"},
}
TIMED = ["--backend", "timed", "--schedule", "1f1b", "-p", "2", "-m", "2", "--costs", "f=1,b=1,unit=ms"]
VERBS = [["run", *TIMED], ["validate", *TIMED], ["calibrate", "--only", "transport"]]


class WithoutMpiTest(unittest.TestCase):
    def test_it_says_what_it_lacks_and_what_to_do(self):
        for launcher, variables in LAUNCHERS.items():
            for verb in VERBS:
                with self.subTest(f"{launcher}, {verb[0]}"):
                    done = subprocess.run([PLUMB, *verb], env=dict(os.environ, **variables), capture_output=True, text=True)
                    self.assertEqual(done.returncode, 1)
                    said = [line for line in done.stderr.splitlines() if line.startswith("plumb: ")]
                    self.assertEqual(len(said), 1, done.stderr)
                    self.assertIn("built without MPI", said[0])
                    self.assertIn("-Dmpi=enabled", said[0])


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"[cases] {program.result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)

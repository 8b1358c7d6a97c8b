#!/usr/bin/env python3
"""The lines of docs/cluster.md that start a process for each GPU, as they stand there but for sizes and names of hosts, on
the played CUDA and NCCL: from a calibration to a validation, and with a rank that is killed, stalls or has another plan.

usage: played_cluster_test.py PLUMB FOLDER    PLUMB: the tool; FOLDER: of libplumb_cuda.so and what it is played on"""

import json
import os
import re
import subprocess
import sys
import time
import unittest

from played_tool import HAS_NCCL, PLUMB, SOURCE, PlayedTool

sys.path.insert(0, str(SOURCE / "tests" / "mpi"))
import slurm  # noqa: E402

HAS_MPI = "MPI   built in" in subprocess.run([PLUMB, "--version"], capture_output=True, text=True).stdout
# Here there are one machine and two GPUs.
SIZES = [(r"-n 16 --host node0:8,node1:8", "-n 2 --host localhost:2"), (r"=eth0\b", "=lo"), (r"-N 2 --ntasks-per-node=8", "-N 1 --ntasks-per-node=2"),
         (r"--gpus-per-node=8", "--gpus-per-node=2"), (r"for rank in 0 1 2 3;", "for rank in 0 1;"), (r"--watchdog 120", ""),
         (r"--budget 60", "--budget 2 --precision fp32")]
# Stands for the tool on the loader's path. One of the ranks may be given another option.
WRAPPER = """#!/bin/sh
case "${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} $*" in "1 "*|*"--rank 1"*) more="$OF_RANK_1" ;; esac
exec TOOL "$@" $more
"""


def documented(part):
    """Returns the command of docs/cluster.md that has these words, with the sizes of this machine."""
    text = (SOURCE / "docs" / "cluster.md").read_text().replace(" \\\n        ", " ")
    commands = [line[4:].split("  #")[0].strip() for line in text.splitlines() if line.startswith("    ")]
    (found,) = [command for command in commands if all(word in command for word in part)]
    for pattern, here in SIZES:
        found = re.sub(pattern, here, found)
    return found


PIPELINE, SHORT = "dp=1,tp=1,pp=2,mbs=1,schedule=1f1b", "--steps 3 --watchdog 2.5"
LAUNCHERS = {"mpirun": ("mpirun", "--backend cuda"), "srun": ("srun", "--gpus-per-node", "--backend cuda"),
             "a loop": ("for rank in",), "srun with a folder": ("srun", "--board")}


@unittest.skipUnless(HAS_NCCL and HAS_MPI, "the tool was built without NCCL or MPI")
class PlayedCluster(PlayedTool):
    def setUp(self):
        super().setUp()
        (self.root / "bin").mkdir(exist_ok=True)
        wrapper = self.root / "bin" / "plumb"
        wrapper.write_text(WRAPPER.replace("TOOL", str(self.tool)))
        wrapper.chmod(0o755)

    def ended(self, launcher, *, verb="run", options="--steps 3", played="", **environment):
        """Runs a documented line. Returns its exit status, its answer and the tool's messages."""
        line = documented(LAUNCHERS[launcher]).replace("plumb run", f"plumb {verb}").replace("/shared/meet", str(self.root / "meet"))
        line = line.replace("--backend cuda", f"--backend cuda {options} --json", 1)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, cwd=self.root, env={
            **os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "PLUMB_PLAYED": f"devices=2{played}",
            "PLUMB_PLAYED_FAULTS": str(self.faults), "OPENBLAS_NUM_THREADS": "1", "LD_LIBRARY_PATH": "", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", **environment})
        self.assertEqual(self.left_over(), "")
        return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line.startswith("plumb: ")]

    def left_over(self):
        """Returns the ranks that still run after a while."""
        for _ in range(100):
            found = subprocess.run(["pgrep", "-fa", f"^{self.tool} "], capture_output=True, text=True).stdout
            if not found:
                break
            time.sleep(0.1)
        return found

    def with_each(self, check):
        """Calls check(launcher), each as a part of the case of its own."""
        for launcher in LAUNCHERS:
            if not NO_SLURM or "srun" not in launcher:
                with self.subTest(launcher=launcher):
                    check(launcher)

    def test_from_a_calibration_to_a_validation(self):
        arguments = documented(("plumb calibrate", "--gpus each")).split()[1:]
        self.answer(*[self.root / word if word == "gpus.json" else word for word in arguments], played="devices=2")
        plan = self.plan(PIPELINE, cluster=self.root / "gpus.json")
        expected = self.losses(plan)

        def check(launcher):
            status, answer, said = self.ended(launcher)
            self.assertEqual((status, said), (0, []))
            self.assert_near(json.loads(answer)["losses"], expected, 1e-4)
            status, answer, said = self.ended(launcher, verb="validate", options="--steps 1")
            self.assertEqual((status, said), (0, []))
            report = json.loads(answer)
            self.assert_near(report["losses"], expected, 1e-4)
            self.assertEqual(len(report["ranks"]), 2)
            self.assertGreater(report["step_time"]["predicted_s"], 0)

        self.with_each(check)

    def test_a_rank_that_is_killed_ends_the_others(self):
        self.plan(PIPELINE)

        def check(launcher):
            status, answer, said = self.ended(launcher, options=SHORT, played=",faulty_device=1,nccl_signal_at=4,signal=9")
            self.assertEqual(answer, "")
            if launcher != "a loop":  # its status is that of `wait`
                self.assertNotEqual(status, 0)
            if launcher not in ("mpirun", "srun"):  # they end the others themselves
                self.assertRegex("\n".join(said), r"^plumb: rank 0, .* rank 1 .*for 2.5 s nothing has come of it.*$")

        self.with_each(check)

    def test_a_rank_that_stalls_is_told_once(self):
        self.plan(PIPELINE)

        def check(launcher):
            _, answer, said = self.ended(launcher, options=SHORT, played=",faulty_device=1,nccl_stalls_at=4")
            self.assertEqual(answer, "")
            self.assertRegex("\n".join(said), r"^plumb: rank \d, .* rank \d .*for 2.5 s nothing has come of it.*$")

        self.with_each(check)

    def test_a_rank_with_another_plan_is_told_once(self):
        self.plan(PIPELINE)

        def check(launcher):
            _, answer, said = self.ended(launcher, OF_RANK_1="--seed 5")
            self.assertEqual((answer, len(said)), ("", 1), said)
            self.assertIn("the ranks were given different plans: rank 1 has another than rank 0", said[0])

        self.with_each(check)


if __name__ == "__main__":
    with slurm.running() as NO_SLURM:
        if NO_SLURM:
            print(f"without srun: {NO_SLURM}")
        unittest.main()

#!/usr/bin/env python3
"""tools/gpu_check --quick from begin to end on the played CUDA (played/played.h), with one GPU and with two.

usage: played_gpu_check_test.py PLUMB FOLDER    PLUMB: the tool; FOLDER: of libplumb_cuda.so and what it is played on"""

import json
import os
import subprocess
import sys
import unittest

from played_tool import HAS_NCCL, SOURCE, PlayedTool

NEEDS_SYS = "topology"  # what a machine shows in /sys
NEEDS_BUILD = "kernels beside the host"  # a program of its own; whole/kernels_test.cpp compares the same kernels here
NEEDS_NCCL = ("NCCL", "nccl", "GPUs")


class PlayedGpuCheckTest(PlayedTool):
    def check(self, gpus):
        """Runs all steps, each with its own limit."""
        out = self.root / f"checked{gpus}"
        answer = subprocess.run([sys.executable, SOURCE / "tools" / "gpu_check", "-o", out, "--tool", self.tool, "--quick", "--budget", "1",
                                 "--steps", "1", "--model", self.root / "model.json"], capture_output=True, text=True,
                                env={**os.environ, "PLUMB_PLAYED": f"devices={gpus}", "PLUMB_PLAYED_FAULTS": str(self.faults),
                                     "OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        report = json.loads((out / "gpu_check.json").read_text())
        self.assertEqual(len(report["gpus"]), gpus)
        skipped = {entry["name"] for entry in report["steps"] if entry["status"] == "skipped"}
        if not HAS_NCCL:
            skipped = {name for name in skipped if not any(word in name for word in NEEDS_NCCL)}
        self.assertEqual(skipped, {NEEDS_SYS, NEEDS_BUILD}, answer.stdout)
        return {entry["name"] for entry in report["steps"] if entry["status"] == "passed"}

    def test_one_gpu(self):
        passed = self.check(1)
        self.assertLessEqual({"suite gpu", "validate 1f1b, 2 stages", "validate 1f1b, 2 stages, as a graph"}, passed)

    def test_two_gpus(self):
        passed = self.check(2)
        if HAS_NCCL:
            self.assertLessEqual({"NCCL layouts of 2 GPUs", "validate 1f1b, 2 GPUs", "validate replicas, 2 GPUs"}, passed)


if __name__ == "__main__":
    unittest.main()

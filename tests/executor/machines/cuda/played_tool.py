"""The tests of the tool on the played CUDA (played/played.h) share this: a copy of the tool with its libraries, and functions
that call it. They are started as TEST PLUMB FOLDER: the tool, and the folder of libplumb_cuda.so and the played libraries."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUMB, LIBRARIES = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))  # arguments of the test that imports this
SOURCE = pathlib.Path(__file__).resolve().parents[4]
MODEL = {"name": "tiny", "source": "a test", "layers": 8, "hidden": 32, "heads": 2, "ffn": 64, "vocab": 256, "sequence": 16,
         "positions": 16, "norm": "layer", "norm_epsilon": 1e-5, "mlp": "gelu", "qkv_bias": True, "linear_bias": True}
HAS_NCCL = (LIBRARIES / "libnccl.so.2").exists()  # it is built only if libplumb_cuda.so has NCCL
needs_nccl = unittest.skipUnless(HAS_NCCL, "libplumb_cuda.so was built without NCCL: there was no nccl.h")
SCHEDULES = ["1f1b", "interleaved", "gpipe", "zb-h1", "zb-v", "pipedream"]


class PlayedTool(unittest.TestCase):
    """Has a folder with the tool in it. A fault that the played CUDA notes fails the case."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name)
        cls.tool = pathlib.Path(shutil.copy(PLUMB, cls.root / "plumb"))
        for name in ("libplumb_cuda.so", "libplayed_cuda.so", "libnccl.so.2"):
            if (LIBRARIES / name).exists():
                shutil.copy(LIBRARIES / name, cls.root)
        (cls.root / "model.json").write_text(json.dumps(MODEL))

    def setUp(self):
        self.faults = self.root / "faults"
        self.faults.unlink(missing_ok=True)

    def tearDown(self):
        self.assertEqual(self.faults.read_text() if self.faults.exists() else "", "")

    def call(self, *arguments, played="", limit_s=60):
        environment = {**os.environ, "PLUMB_PLAYED": played, "PLUMB_PLAYED_FAULTS": str(self.faults), "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run([str(word) for word in (self.tool, *arguments)], capture_output=True, text=True, timeout=limit_s,
                              env=environment)

    def answer(self, *arguments, played=""):
        answer = self.call(*arguments, played=played)
        self.assertEqual(answer.returncode, 0, f"{arguments}: {answer.stderr}")
        return answer.stdout

    def refusal(self, *arguments, played=""):
        """Expects exit 1, or 2 for options that do not go together, and one sentence, whatever notes come before it."""
        answer = self.call(*arguments, played=played)
        self.assertIn(answer.returncode, (1, 2), answer.stdout + answer.stderr)
        said = [line for line in answer.stderr.splitlines() if line.startswith("plumb: ")]
        self.assertEqual(len(said), 1, answer.stderr)
        return said[0]

    def plan(self, layout, *, model=None, cluster="h100", batch=4, precision="fp32"):
        ranks = 1
        for word in layout.split(","):
            key, _, degree = word.partition("=")
            ranks *= int(degree) if key in ("dp", "tp", "cp", "pp") else 1
        path = self.root / "plan.json"
        self.answer("plan", model or self.root / "model.json", f"{cluster}:{ranks}" if cluster == "h100" else cluster,
                    "--global-batch", batch, "--precision", precision, "--layout", layout, "-o", path)
        return path

    def losses(self, plan, *options, played=""):
        return json.loads(self.answer("run", plan, "--steps", 3, "--json", *options, played=played))["losses"]

    def assert_near(self, ours, expected, tolerance):
        self.assertEqual(len(ours), len(expected))
        for a, b in zip(ours, expected):
            self.assertLess(abs(a / b - 1), tolerance)  # false for nan, so it fails

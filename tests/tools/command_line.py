"""Every test of the command line needs these: the tool, a folder of its own, and the form of an answer or a refusal.

The test files take the tool as their argument: NAME_test.py PLUMB
"""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

PLUMB = str(pathlib.Path(sys.argv[1]).resolve())


def plumb(*arguments, cwd=None):
    return subprocess.run([PLUMB, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300)


# AddressSanitizer reserves terabytes of addresses, which a limit on them would forbid.
SANITIZED = b"__asan_init" in pathlib.Path(PLUMB).read_bytes()


def bound_memory():
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix="plumb-cli-")
        self.folder = pathlib.Path(self.holder.name)
        self.addCleanup(self.holder.cleanup)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def done(self, *arguments):
        result = plumb(*arguments)
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stderr}")
        return result.stdout

    def json(self, *arguments):
        """Returns the JSON document that stdout has, and checks that it has nothing else."""
        return json.loads(self.done(*arguments, "--json"))

    def refused(self, code, *arguments, says=()):
        """Checks the exit code, and that stderr has one sentence with each of `says`."""
        result = plumb(*arguments)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stdout}{result.stderr}")
        self.assertTrue(result.stderr.startswith("plumb: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in says:
            self.assertIn(str(part), result.stderr)
        return result

    def llama_plan(self):
        path = self.folder / "plan.json"
        if not path.exists():
            self.done("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "-o", path)
        return path


def run_cases():
    """Runs the cases of the file that was started, prints their number, and exits with 1 if one failed."""
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    failed = len(result.failures) + len(result.errors)
    print(f"[cases] {result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)

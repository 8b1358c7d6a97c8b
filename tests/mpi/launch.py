"""Helpers that the tests of the mpi suite share: they start ranks by mpirun and look after them."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PLUMB = os.path.abspath(sys.argv[1])
LIMIT_S = 120
CLUSTER = {"name": "hand-made", "devices": 8,
           "device": {"name": "cpu", "peak_tflops": {"fp32": 0.05, "bf16": 0.05, "fp16": 0.05}, "memory_gib": 4, "reserved_gib": 0,
                      "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5, "attention_efficiency": 0.5,
                      "memory_efficiency": 0.5, "kernel_fixed_us": 1, "compute_units": 1, "gemm_tile": 1},
           "node": {"devices": 8, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}}
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]


def mpirun(ranks, *arguments, variables=()):
    """Starts ranks of plumb that are all alike, with more environment variables ("NAME=VALUE")."""
    exported = [word for variable in variables for word in ("-x", variable)]
    return mpirun_each([*exported, "-n", str(ranks), PLUMB, *arguments])


def mpirun_each(*groups):
    """Starts groups of ranks, each in its own way: mpirun's options, and the command."""
    command = list(MPIRUN)
    for group in groups:
        command += ([":"] if len(command) > len(MPIRUN) else []) + [str(word) for word in group]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def alone(*arguments):
    """Returns plumb's answer without mpirun, where the ranks are threads."""
    done = subprocess.run([PLUMB, *map(str, arguments), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def said(err):
    """Returns the lines that plumb itself has written, among those of its ranks and mpirun."""
    return [line for line in err.splitlines() if line.startswith("plumb: ")]


def finished(process):
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def started_ranks(process, count):
    """Returns the process ids of all ranks, once they have been running for a second."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True)
        ranks = [int(line) for line in found.stdout.split()]
        if len(ranks) == count:
            time.sleep(1)
            return ranks
        time.sleep(0.1)
    raise TimeoutError(f"{count} ranks did not start")


@contextlib.contextmanager
def stopped(pid):
    """Stops a rank, and kills it afterwards."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_running(pid):
    """Returns True if the process exists and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until_gone(pids):
    """Waits for the processes to end and returns those that still run after a while."""
    deadline = time.monotonic() + LIMIT_S
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [pid for pid in pids if is_running(pid)]


def left_behind(marker):
    """Returns the processes, zombies too, whose command line has the marker; they get a moment to end first."""
    deadline = time.monotonic() + 10
    while True:
        found = subprocess.run(["pgrep", "-f", "-a", str(marker)], capture_output=True, text=True).stdout.splitlines()
        zombies = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "stat=,args="], capture_output=True, text=True).stdout
        found += [line for line in zombies.splitlines() if line.startswith("Z")]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


class MpiTestCase(unittest.TestCase):
    """A test case with a folder of its own, which is removed afterwards."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def together(self, ranks, *arguments):
        code, out, err = finished(mpirun(ranks, *arguments, "--json"))
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def refused(self, process, *parts):
        """Requires a status other than 0 and one sentence with these parts, and returns the sentence."""
        code, _, err = finished(process)
        self.assertNotEqual(code, 0)
        self.assertEqual(len(said(err)), 1, err)
        for part in parts:
            self.assertIn(part, said(err)[0])
        return said(err)[0]

    def cpu_plan(self, layout, *options):
        """Makes a plan of gpt-nano on a made-up cluster of CPUs: 8 sequences of 32 tokens."""
        cluster, plan = self.folder / "cpu.json", self.folder / "plan.json"
        cluster.write_text(json.dumps(CLUSTER))
        degrees = dict(part.split("=") for part in layout.split(","))
        devices = 1
        for degree in ("pp", "dp", "tp", "cp"):
            devices *= int(degrees.get(degree, 1))
        subprocess.run([PLUMB, "plan", "gpt-nano", f"{cluster}:{devices}", "--global-batch", "8", "--seq", "32",
                        "--layout", layout, "--stack", "plumb", *map(str, options), "-o", plan], check=True,
                       capture_output=True)
        return plan


def run_tests():
    """Runs the calling file's cases and ends the process. Skipped (77) without mpirun or MPI."""
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        sys.exit(77)
    trial = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "true"], capture_output=True, text=True)
    if trial.returncode != 0:
        print(f"skipped: mpirun does not work here: {' '.join(trial.stderr.split())[:200]}")
        sys.exit(77)
    version = subprocess.run([PLUMB, "--version"], capture_output=True, text=True, check=True).stdout
    if "MPI   built in" not in version:
        print("skipped: plumb was built without MPI")
        sys.exit(77)
    program = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print(f"[cases] {result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)

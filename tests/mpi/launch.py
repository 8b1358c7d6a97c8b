"""What the tests of the mpi suite share: starting ranks by mpirun, and looking after them."""

import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

PLUMB = os.path.abspath(sys.argv[1])
LIMIT_S = 120


def mpirun(ranks, *arguments):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), PLUMB, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process):
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def started_ranks(process, count):
    """The process ids of all ranks, once they have been running for a second."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True)
        ranks = [int(line) for line in found.stdout.split()]
        if len(ranks) == count:
            time.sleep(1)
            return ranks
        time.sleep(0.1)
    raise TimeoutError(f"{count} ranks did not start")


def is_running(pid):
    """Not gone, and not waiting to be buried."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until_gone(pids):
    """Those of them that still run after a while."""
    deadline = time.monotonic() + LIMIT_S
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [pid for pid in pids if is_running(pid)]


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

"""Ranks that srun starts, under a Slurm on this machine that the test starts: munged, slurmctld and slurmd.

Skipped (77) where Slurm, munge, mpirun or their PMIx plugin are not installed, or who runs it is not root.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from launch import LIMIT_S, MPIRUN, PLUMB, MpiTestCase, alone, finished, run_tests, said, wait_until_gone

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sinfo", "mpirun")
CONF = """ClusterName=plumb
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
SrunPortRange={first_port}-{last_port}
NodeName={host} NodeAddr=127.0.0.1 Port={slurmd_port} CPUs=4 CoresPerSocket=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""
TIMED = ("validate", "--backend", "timed", "--schedule", "1f1b", "-p", 4, "-m", 4, "--costs", "f=20,b=40,c=0.05,unit=ms")


class Slurm:
    """Runs the daemons, in a folder of their own, until stop()."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plumb-slurm-"))
        host, port = socket.gethostname().split(".")[0], 20000 + os.getpid() % 1000 * 20
        (self.folder / "state").mkdir()
        self.conf = self.folder / "slurm.conf"
        self.conf.write_text(CONF.format(host=host, port=port, folder=self.folder, slurmd_port=port + 1,
                                         first_port=port + 5, last_port=port + 19))
        key = self.folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        os.environ["SLURM_CONF"] = str(self.conf)
        self.daemons = []
        place = [f"--{what}={self.folder}/munge.{what.split('-')[0]}" for what in ("socket", "pid-file", "log-file", "seed-file")]
        self.start("munged", "--foreground", "--force", f"--key-file={key}", *place)
        self.start("slurmctld", "-D", "-f", self.conf)
        self.start("slurmd", "-D", "-f", self.conf)

    def start(self, *command):
        log = open(self.folder / f"{command[0]}.{len(self.daemons)}.out", "w")
        self.daemons.append(subprocess.Popen([*map(str, command)], stdout=log, stderr=subprocess.STDOUT))

    def is_ready(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and all(daemon.poll() is None for daemon in self.daemons):
            seen = subprocess.run(["sinfo", "-h", "-o", "%D %t"], capture_output=True, text=True).stdout.split()
            if seen == ["1", "idle"]:
                return True
            time.sleep(0.3)
        return False

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def srun(*arguments):
    return subprocess.Popen(["srun", "--mpi=pmix", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def why_not():
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{missing[0]} is not installed (Debian: slurm-wlm, munge)"
    if os.getuid() != 0:
        return "Slurm's daemons want root"
    return ""


def has_pmix():
    """Returns True if srun offers PMIx; the daemons must be running."""
    return "pmix" in subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True).stdout


class SlurmTest(MpiTestCase):
    def test_ranks_are_held_against_the_prediction(self):
        code, out, err = finished(srun("-n", 4, PLUMB, *TIMED, "--steps", 2))
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("predicted before"), 0)
        self.assertIn("step time (median of 2)", out)
        self.assertIn("4 processes", out)

    def test_losses_are_bitwise_those_of_threads(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        code, out, err = finished(srun("-n", 2, PLUMB, "run", plan, "--steps", 2, "--json"))
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["losses"], alone("run", plan, "--steps", 2)["losses"])

    def test_too_few_ranks_are_refused_in_a_sentence(self):
        code, _, err = finished(srun("-n", 3, PLUMB, *TIMED))
        self.assertNotEqual(code, 0)
        self.assertEqual(len(said(err)), 1, err)
        self.assertIn("the schedule has 4 ranks and 3 were started", said(err)[0])

    def test_a_killed_rank_ends_the_others(self):
        process = srun("-n", 4, "--kill-on-bad-exit=1", "--wait=5", PLUMB, *TIMED, "--steps", 2000, "--watchdog", 5)
        deadline = time.monotonic() + LIMIT_S
        ranks = []
        while len(ranks) < 4 and time.monotonic() < deadline:
            time.sleep(0.2)
            ranks = [int(pid) for pid in subprocess.run(["pgrep", "-f", "steps 2000 --watchdog 5"], capture_output=True,
                                                        text=True).stdout.split() if
                     os.path.basename(os.readlink(f"/proc/{pid}/exe")) == os.path.basename(PLUMB)]
        time.sleep(1)
        os.kill(ranks[1], signal.SIGKILL)
        self.assertNotEqual(finished(process)[0], 0)
        self.assertFalse(wait_until_gone(ranks))

    def test_mpirun_takes_as_many_ranks_as_an_allocation_has(self):
        command = ["salloc", "-Q", "-n", "4", *MPIRUN, PLUMB, *map(str, TIMED), "--steps", "2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 processes", done.stdout)


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    slurm = Slurm()
    try:
        if not slurm.is_ready() or not has_pmix():
            print("skipped: the daemons did not get ready, or srun has no PMIx plugin")
            sys.exit(77)
        run_tests()
    finally:
        slurm.stop()

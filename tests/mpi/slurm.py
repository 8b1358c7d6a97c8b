"""A Slurm on this machine for tests: munged, slurmctld and slurmd, in a folder of their own."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

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
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
SrunPortRange={first_port}-{last_port}
NodeName={host} NodeAddr=127.0.0.1 Port={slurmd_port} CPUs=4 CoresPerSocket=4 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class Slurm:
    """Runs the daemons, in a folder of their own, until stop()."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plumb-slurm-"))
        host, port = socket.gethostname().split(".")[0], 20000 + os.getpid() % 1000 * 20
        (self.folder / "state").mkdir()
        self.conf = self.folder / "slurm.conf"
        self.conf.write_text(CONF.format(host=host, port=port, folder=self.folder, slurmd_port=port + 1,
                                         first_port=port + 5, last_port=port + 19))
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")
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


@contextlib.contextmanager
def running():
    """Runs the daemons. Gives the reason why there are none, or an empty text."""
    if reason := why_not():
        yield reason
        return
    slurm = Slurm()
    try:
        yield "" if slurm.is_ready() and has_pmix() else "the daemons did not get ready, or srun has no PMIx plugin"
    finally:
        slurm.stop()

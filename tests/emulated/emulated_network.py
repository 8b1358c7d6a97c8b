"""A network that is slow on purpose: network namespaces of this machine, each with a card that tc's tbf limits, are joined
by a bridge, and mpirun starts a rank in each, over TCP. Needs root, ip, tc and mpirun.
"""

import contextlib
import os
import shutil
import subprocess
import sys

NET = "10.77.0"
BRIDGE = "plumb-br"
BURST_KIB = 128
MOST_RANKS = 4


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


def remove_cluster():
    for rank in range(MOST_RANKS):
        run("ip", "netns", "del", f"plumb-r{rank}", check=False)
        run("ip", "link", "del", f"plumb-v{rank}", check=False)
    run("ip", "link", "del", BRIDGE, check=False)


@contextlib.contextmanager
def cluster(mbit, ranks):
    """While it lasts, there are so many namespaces, whose cards let so many Mbit/s pass."""
    remove_cluster()
    try:
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", f"{NET}.254/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for rank in range(ranks):
            space, outside = f"plumb-r{rank}", f"plumb-v{rank}"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", space)
            run("ip", "link", "set", outside, "master", BRIDGE, "up")
            run("ip", "-n", space, "addr", "add", f"{NET}.{rank + 1}/24", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{mbit}mbit", "burst",
                f"{BURST_KIB}kb", "latency", "500ms")
            # A connection that has been idle keeps its speed, as between the machines of a training cluster.
            run("ip", "netns", "exec", space, "sysctl", "-w", "net.ipv4.tcp_slow_start_after_idle=0")
        yield
    finally:
        remove_cluster()


def mpirun_environment():
    return dict(os.environ, PMIX_MCA_ptl="tcp", PMIX_MCA_ptl_tcp_remote_connections="1", PMIX_MCA_ptl_tcp_if_include=f"{NET}.0/24")


def mpirun_command(arguments, ranks):
    network = f"{NET}.0/24"
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca",
               "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]
    for rank in range(ranks):
        command += ([":"] if rank > 0 else []) + ["-n", "1", "ip", "netns", "exec", f"plumb-r{rank}", *arguments]
    return command


def mpirun(arguments, ranks):
    """Returns what the program prints that so many ranks are. Raises RuntimeError with its errors where it fails."""
    result = subprocess.run(mpirun_command(arguments, ranks), env=mpirun_environment(), capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return result.stdout


def require_means(plumb):
    """Ends the program with a reason, as one that was skipped, where there can be no such network."""
    for tool in ("ip", "tc", "mpirun"):
        if shutil.which(tool) is None:
            skip(f"there is no {tool}")
    if os.geteuid() != 0:
        skip("network namespaces need root")
    try:
        with cluster(1000, MOST_RANKS):
            mpirun(["true"], MOST_RANKS)
    except RuntimeError as error:
        skip(f"mpirun does not start ranks in namespaces: {' '.join(str(error).split())[:200]}")
    except subprocess.TimeoutExpired:
        skip("mpirun starts no ranks in namespaces")
    except subprocess.CalledProcessError as error:
        skip(f"network namespaces are not to be had: {error.stderr.strip()}")
    if "MPI   built in" not in run(plumb, "--version").stdout:
        skip("plumb was built without MPI")

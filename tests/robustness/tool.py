"""Both tests share this: the tool on the path, bounds on a run, and the words that no answer may have."""
import os
import pathlib
import re
import signal
import subprocess

MEMORY_KIB = 4 << 20  # the budget that schedules/limits.h promises

# These are words of libraries, of the language and of the runtime, which do not help a user.
FOREIGN = re.compile(
    r"terminate called|what\(\)|std::|basic_string|vector::|bad_alloc|bad_function|json\.exception|stoi|stod|stoll|regex_error|"
    r"Assertion|AddressSanitizer|runtime error:|core dumped|iostream|boost::|CLI::|_M_")


class Tool:
    """Runs lines of bash in which `plumb` is the tool under test."""

    def __init__(self, plumb):
        path = pathlib.Path(plumb).resolve()
        self.environment = dict(os.environ, PATH=f"{path.parent}{os.pathsep}{os.environ['PATH']}", OPENBLAS_NUM_THREADS="1")
        # AddressSanitizer reserves terabytes of addresses, which a limit on them would forbid.
        self.sanitized = b"__asan_init" in path.read_bytes()
        self.bounds = "ulimit -c 0; " + ("" if self.sanitized else f"ulimit -v {MEMORY_KIB}; ")

    def answer(self, command, folder, seconds):
        """Runs the command in `folder` and returns (exit code, stdout, stderr); the code is None if it took longer than
        `seconds`."""
        with subprocess.Popen(["bash", "-c", self.bounds + command], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
            try:
                stdout, stderr = process.communicate(timeout=seconds)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                stdout, stderr = process.communicate()
                code = None
        return code, stdout.decode(errors="replace"), stderr.decode(errors="replace")

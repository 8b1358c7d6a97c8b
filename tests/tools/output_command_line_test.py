#!/usr/bin/env python3
"""Checks where answers and files go: a standard output that takes nothing, devices, FIFOs, links, and other -o paths.

usage: output_command_line_test.py PLUMB
"""
import json
import os
import pathlib
import stat
import subprocess
import threading
import unittest

from command_line import PLUMB, CommandLineTest, run_cases

SHORT = ("schedule", "list")
LONG = ("models", "--json")
PLAN = ("plan", "gpt2", "h100:8", "--global-batch", "16", "--layout", "dp=8")


def piped(command):
    """Runs a shell command in which {} is the tool, and fails if any part of it does; returns the completed process."""
    script = "set -o pipefail; " + command.replace("{}", f"'{PLUMB}'")
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)


def most_resident(*arguments):
    """Bytes that the tool holds at most."""
    with subprocess.Popen([PLUMB, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise AssertionError(f"{arguments}: exit code {process.returncode}")
    return usage.ru_maxrss << 10


class StandardOutput(CommandLineTest):
    def cannot_answer(self, result, reason):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("plumb: the answer cannot be written to standard output"), result.stderr)
        self.assertIn(reason, result.stderr)

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "there is no /dev/full")
    def test_a_full_disk_is_said(self):
        for arguments in (SHORT, LONG, PLAN, (*PLAN, "--json"), ("--help",), ("--version",), ("simulate", "--help")):
            self.cannot_answer(piped("{} " + " ".join(arguments) + " > /dev/full"), "No space left on device")

    def test_a_closed_output_is_said_and_no_file_takes_its_place(self):
        for arguments in (SHORT, LONG):
            self.cannot_answer(piped("{} " + " ".join(arguments) + " >&-"), "Bad file descriptor")
        plan = self.folder / "plan.json"
        self.assertEqual(piped("{} " + " ".join(PLAN) + f" -o {plan} >&-").returncode, 1)
        json.loads(plan.read_text())
        quiet = piped("{} " + " ".join(SHORT) + " 2>&-")
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_a_pipe_that_nobody_reads_is_said(self):
        for arguments in (SHORT, LONG):
            self.cannot_answer(piped("{ sleep 0.2; {} " + " ".join(arguments) + "; } | true"), "Broken pipe")

    def test_nothing_to_answer_needs_no_output(self):
        order = self.folder / "order.txt"
        result = piped("{} schedule make 1f1b -p 2 -m 2 -o " + str(order) + " > /dev/full")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(order.exists())


class Outputs(CommandLineTest):
    MAKE = ("schedule", "make", "1f1b", "-p", 2, "-m", 2, "-o")

    def order(self):
        self.done(*self.MAKE, self.folder / "whole.txt")
        return (self.folder / "whole.txt").read_text()

    def test_a_link_stays_and_its_file_is_written(self):
        whole = self.order()
        (self.folder / "to.txt").symlink_to("there.txt")
        for _ in range(2):  # the file does not exist, then it does
            self.done(*self.MAKE, self.folder / "to.txt")
            self.assertTrue((self.folder / "to.txt").is_symlink())
            self.assertEqual((self.folder / "there.txt").read_text(), whole)
        (self.folder / "round.txt").symlink_to("round.txt")
        self.refused(1, *self.MAKE, self.folder / "round.txt", says=["round.txt"])

    def test_a_fifo_and_a_substituted_process_get_the_bytes(self):
        whole = self.order()
        fifo = self.folder / "fifo.txt"
        os.mkfifo(fifo)
        got = []
        reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
        reader.start()
        self.done(*self.MAKE, fifo)
        reader.join(timeout=60)
        self.assertEqual(got, [whole])
        self.assertTrue(fifo.is_fifo())
        told = piped("{} " + " ".join(PLAN) + " -o >(cat >&2) > /dev/null; wait").stderr
        self.assertEqual(json.loads(told[told.index("{"):told.rindex("}") + 1])["layout"]["dp"], 8)

    def test_a_device_stays_one(self):
        null = self.folder / "null.txt"
        try:
            os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            null.write_text("x")
        except OSError:
            self.skipTest("no device can be made here")
        self.done(*self.MAKE, null)
        self.assertTrue(stat.S_ISCHR(os.lstat(null).st_mode))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["null.txt"])

    def test_standard_output_may_be_named(self):
        self.done(*PLAN, "-o", self.folder / "plan.json")
        whole = (self.folder / "plan.json").read_text()
        for to in ("| cat", f"> {self.folder}/out.txt; cat {self.folder}/out.txt"):
            self.assertIn(whole, piped("{} " + " ".join(PLAN) + " -o /dev/stdout " + to).stdout)

    def test_a_trace_is_written_as_it_is_made(self):
        schedule = ("simulate", "--schedule", "1f1b", "-p", "16", "-m", "2048", "--costs", "f=1,b=2,c=0.1")
        trace = self.folder / "trace.json"
        without, written = most_resident(*schedule), most_resident(*schedule, "--trace", trace)
        size = trace.stat().st_size
        self.assertGreater(size, 50 << 20)
        self.assertLess(written - without, size // 4)

    def test_what_a_killed_run_has_left_is_cleared_away(self):
        left = self.write("order.txt.aBcDeF.tmp", "half")
        self.done(*self.MAKE, self.folder / "order.txt")
        self.assertFalse(left.exists())


if __name__ == "__main__":
    run_cases()

#!/usr/bin/env python3
"""Checks what a terminal shows: tables as wide as it is, and escapes only where it knows them.

usage: terminal_command_line_test.py PLUMB
"""
import fcntl
import os
import pty
import struct
import termios

from command_line import PLUMB, CommandLineTest, run_cases


def on_terminal(arguments, columns=80, **environment):
    """Returns what the tool prints on a terminal of so many columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        settings = dict(os.environ, TERM="xterm")
        settings.pop("NO_COLOR", None)
        os.execve(PLUMB, [PLUMB, *map(str, arguments)], dict(settings, **environment))
    text = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            text += piece
    except OSError:  # the tool has ended
        pass
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise AssertionError(text.decode())
    return text.decode().replace("\r\n", "\n")


def table_lines(text):
    """Returns the lines of all tables: those from the one above a rule of dashes to the next empty line."""
    lines = text.split("\n")
    found, inside = [], False
    for i, line in enumerate(lines):
        if line and set(line) <= {"-", " "}:
            inside = True
            found.append(lines[i - 1])
        inside = inside and bool(line)
        if inside:
            found.append(line)
    return found


class Terminal(CommandLineTest):
    PLAN = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128)

    def test_no_table_is_wider_than_the_terminal(self):
        plan = self.llama_plan()
        for question in (self.PLAN, ("simulate", plan), ("memory", plan), ("score", "--help"),
                         ("whatif", plan, "--vary", "training.global_batch=32,64")):
            for columns in (80, 120):
                lines = table_lines(on_terminal(question, columns))
                self.assertTrue(lines or question[0] == "score", question)
                for line in lines:
                    self.assertLessEqual(len(line), columns, (question, line))

    def test_escapes_are_printed_only_where_a_terminal_knows_them(self):
        draw = ("schedule", "show", "1f1b", "-p", 4, "-m", 8)
        self.assertIn("\x1b[", on_terminal(draw))
        self.assertNotIn("\x1b", on_terminal(draw, NO_COLOR="1"))
        self.assertNotIn("\x1b", on_terminal(draw, TERM="dumb"))
        self.assertNotIn("\x1b", on_terminal(self.PLAN, TERM="dumb"))
        self.assertNotIn("\x1b", self.done(*draw))


if __name__ == "__main__":
    run_cases()

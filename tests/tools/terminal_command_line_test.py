#!/usr/bin/env python3
"""Checks what a terminal shows, verb by verb: lines as wide as it is, and escapes only where it knows them.

usage: terminal_command_line_test.py PLUMB
"""
import fcntl
import json
import os
import pty
import re
import struct
import termios

from command_line import PLUMB, CommandLineTest, run_cases
from megatron_log import megatron_log

ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def on_terminal(arguments, columns=80, when_said=(), **environment):
    """Returns what the tool prints on a terminal of so many columns. As soon as `when_said` has a text that it has
    printed, its function is called."""
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
            if when_said and when_said[0] in text:
                when_said[1]()
                when_said = ()
    except OSError:  # the tool has ended
        pass
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise AssertionError(text.decode())
    return text.decode().replace("\r\n", "\n")


# What completion and man print is for other programs, which have no lines of 80 columns.
FOR_PROGRAMS = {"completion", "man"}


class Terminal(CommandLineTest):
    PLAN = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128)

    def verbs(self):
        """Returns the verbs that the help lists, as "plan" and "schedule show"."""
        def listed(*group):
            text = self.done(*group, "--help")
            names = [line.split()[0] for line in text.split("verbs:\n")[1].split("\n\n")[0].split("\n")]
            return names
        return {word for name in listed() for word in
                ([f"{name} {of}" for of in listed(name)] if name in ("schedule", "trace") else [name])}

    def questions(self):
        """Returns the arguments of a question for each verb. Its key is the verb, with an option that the question has too."""
        plan, cpu, small = self.llama_plan(), self.folder / "cpu.json", self.folder / "small.json"
        orders = [self.folder / name for name in ("a.json", "b.json")]
        log = self.write("run.log", megatron_log(8, 1.1 * self.json("simulate", plan)["step_time_s"] * 1e3))
        self.done("calibrate", "--backend", "cpu", "--ranks", 2, "--budget", 2, "-o", cpu)
        self.done("plan", "gpt-nano", f"{cpu}:2", "--global-batch", 8, "--layout", "pp=2,schedule=1f1b", "-o", small)
        for order, costs in zip(orders, ("f=1,i=1,w=1,c=0", "f=1,i=1,w=1,c=0.5")):
            self.done("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", costs, "--trace", order)
        self.done("export", plan, "--to", "megatron-bridge", "-o", self.folder / "run.py")
        one = ("-p", 4, "-m", 8)
        return {
            "models": (), "clusters": (), "stacks": (), "plan": self.PLAN[1:], "plan --explain": self.PLAN[1:],
            "budget": (plan, "--tokens", "1e12"), "simulate": (plan,), "simulate --verbose": (plan,),
            "schedule list": (), "schedule make": ("1f1b", *one, "-o", self.folder / "order.json"),
            "schedule search": (*one, "--curve"),
            "schedule search --objective makespan": ("-p", 6, "-m", 12, "--costs", "f=1,i=1.5,w=0.8,c=0.1"), "schedule show": ("dualpipe", "-p", 8, "-m", 20),
            "schedule check": ("1f1b", *one), "schedule convert": ("1f1b", *one, "-o", self.folder / "order.csv"),
            "memory": (plan,), "memory --arena": (plan,),
            "whatif": (plan, "--vary", "training.global_batch=32,64"), "whatif --vary cluster.devices=8,16": (plan,),
            "export": (plan, "--to", "megatron", "-o", self.folder / "run.sh"),
            "import": (self.folder / "run.py", "--model", "llama-3-8b", "--devices", 16), "compare": (plan, log),
            "score": (self.own_rows(),), "run": (small, "--steps", 2), "run --backend timed": (small, "--steps", 2),
            "validate": (small, "--steps", 2, "--verbose"), "calibrate": ("--budget", 2, "-o", cpu),
            "trace info": (orders[0],), "trace compare": orders,
            "partition": ("gpt2", "h100:4", "--global-batch", 32),
            "partition --meshes": ("vgg-16", "rtx4090:4", "--global-batch", 64), "help": ("budget",),
        }

    def own_rows(self):
        row = {"id": "one", "source": {"repo": "VIA-Research/vTrain"}, "hardware": "A100-80GB SXM, 8 per node",
               "model": {"name": "GPT 3.6B", "layers": 30, "hidden": 3072, "heads": 32, "ffn": 12288, "seq": 2048,
                         "gated_mlp": False},
               "gpus": 64, "gpus_per_node": 8, "tp": 8, "pp": 1, "dp": 8, "mbs": 8, "gbs": 512, "zero": 0,
               "recompute": "full", "precision": "mixed fp16", "schedule": "1F1B", "measured": {"step_time_s": 5.0}}
        return self.write("rows.json", json.dumps({"meta": {}, "rows": [row, dict(row, id="two", mbs=4)]}))

    def test_no_line_of_a_verb_is_wider_than_the_terminal(self):
        questions = self.questions()
        self.assertEqual(self.verbs() - FOR_PROGRAMS, {key.split(" --")[0] for key in questions})
        for key, arguments in questions.items():
            verb, dashes, option = key.partition(" --")
            question = [*verb.split(), *arguments, *(dashes + option).split()]
            for columns in (80, 120):
                text = on_terminal(question, columns)
                for line in ESCAPE.sub("", text).split("\n"):
                    shown = line.split("\r")[-1]
                    if " " in shown.strip():  # a layout that is typed again stands whole
                        self.assertLessEqual(len(shown), columns, (key, line))
            text = on_terminal(question, TERM="dumb")
            self.assertNotIn("\x1b", text, key)
            self.assertNotIn("\r", text, key)

    def test_escapes_are_printed_only_where_a_terminal_knows_them(self):
        draw = ("schedule", "show", "1f1b", "-p", 4, "-m", 8)
        self.assertIn("\x1b[", on_terminal(draw))
        self.assertNotIn("\x1b", on_terminal(draw, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.done(*draw))

    def test_work_of_more_than_a_second_says_for_how_long_it_lasts(self):
        text = self.llama_plan().read_text()
        pipe = self.folder / "late.json"
        os.mkfifo(pipe)
        answer = on_terminal(("memory", pipe), when_said=(b"\rplumb memory: ", lambda: pipe.write_text(text)))
        self.assertIn("\r\x1b[Kllama-3-8b on h100:16", answer)  # the line is gone before the answer


if __name__ == "__main__":
    run_cases()

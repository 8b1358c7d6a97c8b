#!/usr/bin/env python3
"""Runs the commands of the documents, and compares the answers that they show.

A command is a line of code that begins with "$ plumb"; what stands under it in the same block is its answer. There,
"..." stands for anything, spaces and line ends are one, and the rules of tables count for nothing: documents wrap and
shorten. A command may go on behind a backslash. "$ cat FILE" shows a file, which the commands behind it find. Commands without "$" are run without a look at
their answer, if what they need can be here.

usage: documents_command_line_test.py PLUMB [--renew]      writes the answers of "$ plumb help" anew
"""
import pathlib
import re
import shlex
import subprocess
import sys

from command_line import PLUMB, CommandLineTest, plumb, run_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]
INDENT = "    "

# Pages and commands that need what tests do not have: measured rows, several machines, GPUs, minutes.
NOT_RUN = {"constants.md", "fidelity.md", "cluster.md", "emulated.md", "validation.md", "adding_a_layer.md"}
SMALL = re.compile("^plumb (run|validate) plan.json")  # a plan that this machine's CPU can run takes the place of theirs
NEEDS_MORE = re.compile(r"space wide|--meshes|--solver-nodes|cuda|nccl|--only (gpus|topology|collectives)|mpirun|ds_config|bert32a100|rank4|gemm.csv|graph.txt|model.onnx|ours.json|path/to|run.log|costs.json|plumb score|before.json")


def blocks_of_code(text):
    """Yields the blocks that stand between fences, and those that are indented."""
    block, is_fenced = [], False
    for line in text.splitlines():
        is_fence = line.startswith("```")
        if is_fence or not (is_fenced or line.startswith(INDENT) or not line.strip()):
            yield block
            block, is_fenced = [], is_fence and not is_fenced
        else:
            block.append(line if is_fenced else line.removeprefix(INDENT))
    yield block


def shown_commands(text):
    """Returns the commands of a document in their order, each with the answer that stands under it."""
    found = []
    for block in blocks_of_code(text.replace("\\\n", " ")):
        answer = None
        for line in block:
            if line.startswith(("$ plumb ", "$ cat ")):
                answer = []
                found.append((line.removeprefix("$ "), answer))
            elif answer is not None:
                answer.append(line)
    return [(command, "\n".join(answer)) for command, answer in found]


def other_commands(text):
    """Returns the commands of a document that show no answer."""
    joined = text.replace("\\\n", " ")
    lines = [line.strip() for block in blocks_of_code(joined) for line in block]
    return [line.split("  #")[0] for line in lines if line.startswith("plumb ")]


def without_rules(answer):
    return "\n".join(line for line in answer.splitlines() if not re.fullmatch("[- ]*-[- ]*", line))


def pattern_of(answer):
    """Returns the regular expression of the answers that a document may show so."""
    words = [".*?".join(map(re.escape, word.split("..."))) for word in without_rules(answer).split()]
    return re.compile(r"\s*".join(words) + r"\s*", re.S)


class Documents(CommandLineTest):
    def test_commands_of_documents_answer_as_the_documents_show(self):
        compared = 0
        for page in PAGES:
            for command, shown in shown_commands(page.read_text()):
                if command.startswith("cat "):
                    self.write(command.removeprefix("cat "), shown.strip() + "\n")
                    continue
                with self.subTest(page=page.name, command=command):
                    result = plumb(*shlex.split(command)[1:], cwd=self.folder)
                    answer = (result.stdout or result.stderr.removeprefix("plumb: ")).replace("\\\n", " ")
                    self.assertLess(result.returncode, 2, result.stderr)
                    self.assertTrue(pattern_of(shown).fullmatch(without_rules(answer)), f"{shown}\nis shown for\n{answer}")
                compared += 1
        self.assertGreater(compared, 40)

    def test_other_commands_of_documents_are_accepted(self):
        made = self.made_files()
        run = 0
        for page in PAGES:
            for command in [] if page.name in NOT_RUN else other_commands(page.read_text()):
                if NEEDS_MORE.search(command) or "..." in command:
                    continue
                with self.subTest(page=page.name, command=command):
                    for name, contents in made.items():  # other commands may have written them
                        (self.folder / name).write_bytes(contents)
                    if SMALL.search(command):
                        command = command.replace("plan.json", "small.json")
                    result = subprocess.run(["sh", "-c", re.sub(r"^plumb\b", shlex.quote(PLUMB), command)], cwd=self.folder,
                                            capture_output=True, text=True, timeout=600)
                    self.assertFalse(result.returncode != 0 and not result.stdout, result.stderr)  # a verdict may be FAIL
                run += 1
        self.assertGreater(run, 50)

    def made_files(self):
        """Returns the files that the documents' commands name, by name: plans, and what else a user would have."""
        measured = ["calibrate", "--backend", "cpu", "--ranks", 2, "--budget", 3, "-o"]
        self.in_folder(*measured, "cpu.json")
        self.in_folder("plan", "gpt-micro", "cpu.json:2", "--global-batch", 8, "--layout", "pp=2,schedule=1f1b", "-o", "small.json")
        self.in_folder("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "-o", "plan.json")
        self.in_folder("schedule", "convert", "1f1b", "-p", 4, "-m", 8, "-o", "mine.csv")
        self.in_folder("schedule", "convert", "1f1b", "-p", 4, "-m", 8, "-o", "mine.txt")
        self.in_folder("simulate", "plan.json", "--trace", "step.json")
        self.in_folder("export", "plan.json", "--to", "megatron", "-o", "run.sh")
        self.write("pins.json", '{"tp": [2, 4], "pp": "..8"}')
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def in_folder(self, *arguments):
        result = plumb(*arguments, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)


def renew(page):
    """Writes the answers of "$ plumb help" in a page anew."""
    def answer(found):
        return f"{found[1]}{plumb(*shlex.split(found[2])).stdout.rstrip()}\n```"
    text = page.read_text()
    renewed = re.sub(r"(```\n\$ plumb (help [^\n]*)\n).*?\n?```", answer, text, flags=re.S)
    if renewed != text:
        page.write_text(renewed)


if __name__ == "__main__":
    if sys.argv[2:] == ["--renew"]:
        for each in PAGES:
            renew(each)
    else:
        run_cases()

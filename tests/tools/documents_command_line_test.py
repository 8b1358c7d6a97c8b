#!/usr/bin/env python3
"""Runs the commands whose answers the documents show, and compares the answers.

A command is a line of code that begins with "$ plumb"; what stands under it in the same block is its answer. There,
"..." stands for anything, spaces and line ends are one, and the rules of tables count for nothing: documents wrap and
shorten.

usage: documents_command_line_test.py PLUMB
"""
import pathlib
import re
import shlex

from command_line import CommandLineTest, plumb, run_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDENT = "    "


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
    for block in blocks_of_code(text):
        answer = None
        for line in block:
            if line.startswith("$ plumb "):
                answer = []
                found.append((line.removeprefix("$ "), answer))
            elif answer is not None:
                answer.append(line)
    return [(command, "\n".join(answer)) for command, answer in found]


def without_rules(answer):
    return "\n".join(line for line in answer.splitlines() if not re.fullmatch("[- ]*-[- ]*", line))


def pattern_of(answer):
    """Returns the regular expression of the answers that a document may show so."""
    words = [".*?".join(map(re.escape, word.split("..."))) for word in without_rules(answer).split()]
    return re.compile(r"\s*".join(words) + r"\s*", re.S)


class Documents(CommandLineTest):
    def test_commands_of_documents_answer_as_the_documents_show(self):
        compared = 0
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for command, shown in shown_commands(page.read_text()):
                with self.subTest(page=page.name, command=command):
                    result = plumb(*shlex.split(command)[1:], cwd=self.folder)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertTrue(pattern_of(shown).fullmatch(without_rules(result.stdout)), f"{shown}\nis shown for\n{result.stdout}")
                compared += 1
        self.assertGreater(compared, 8)


if __name__ == "__main__":
    run_cases()

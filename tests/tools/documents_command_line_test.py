#!/usr/bin/env python3
"""Runs the commands of the documents whose answers the documents show, and compares the answers.

A command is an indented line that begins with "$ plumb", and the indented lines under it are its answer.

usage: documents_command_line_test.py PLUMB
"""
import pathlib
import shlex

from command_line import CommandLineTest, plumb, run_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDENT = "    "


def shown_commands(text):
    """Returns the commands of a document in their order, each with the answer that stands under it."""
    found = []
    for line in text.splitlines():
        if line.startswith(INDENT + "$ plumb "):
            found.append((line.removeprefix(INDENT + "$ "), []))
            is_answer = True
        elif not line.startswith(INDENT) and line.strip():
            is_answer = False
        elif found and is_answer:
            found[-1][1].append(line.removeprefix(INDENT))
    return [(command, "\n".join(answer).strip("\n")) for command, answer in found]


class Documents(CommandLineTest):
    def test_commands_of_documents_answer_as_the_documents_show(self):
        compared = 0
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for command, shown in shown_commands(page.read_text()):
                with self.subTest(page=page.name, command=command):
                    result = plumb(*shlex.split(command)[1:], cwd=self.folder)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    answer = "\n".join(line.rstrip() for line in result.stdout.strip("\n").split("\n"))
                    self.assertEqual(answer, shown)
                compared += 1
        self.assertGreater(compared, 3)


if __name__ == "__main__":
    run_cases()

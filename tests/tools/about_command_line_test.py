#!/usr/bin/env python3
"""Checks what the tool says of itself: help, completion in shells, the manual page.

usage: about_command_line_test.py PLUMB
"""
import re
import shlex
import shutil
import subprocess

from command_line import CommandLineTest, plumb, run_cases


def verbs(*parents):
    """Returns the verbs under the parents, each as its words."""
    text = plumb("help", *parents).stdout
    section = re.search(r"\nverbs:\n((?:  .*\n)+)", text)
    names = re.findall(r"^  (\w+)", section.group(1), re.M) if section else []
    return [(*parents, name) for name in names]


class About(CommandLineTest):
    def all_verbs(self):
        for verb in verbs():
            below = verbs(*verb)
            yield from below or [verb]

    def test_every_verb_has_help_with_an_example_and_no_line_is_wider_than_the_page(self):
        count = 0
        for verb in self.all_verbs():
            text = self.done("help", *verb)
            self.assertEqual(text, self.done(*verb, "--help"))
            self.assertIn("usage: plumb " + " ".join(verb), text)
            if verb[0] not in ("help", "man"):
                self.assertIn("example: plumb " + " ".join(verb), text)
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 120, verb)
            count += 1
        self.assertGreater(count, 20)
        self.refused(2, "help", "plann", says=["plann", "plan"])

    def test_examples_of_schedules_run_as_they_stand(self):
        for verb in self.all_verbs():
            example = re.search(r"^example: plumb (.*)$", self.done("help", *verb), re.M)
            if example and verb[0] in ("schedule", "simulate", "models", "clusters", "stacks"):
                said = plumb(*shlex.split(example.group(1)), cwd=self.folder)
                self.assertEqual(said.returncode, 0, (verb, said.stderr))

    def test_defaults_and_choices_stand_beside_their_options(self):
        text = " ".join(self.done("help", "plan").split())
        self.assertIn("--top N how many layouts to list (default: 5)", text)
        self.assertIn("--space usual|wide", text)
        self.assertIn("--global-batch N", text)
        self.assertIn("--to TEXT", " ".join(self.done("help", "export").split()))
        self.assertIn("(required)", self.done("help", "export"))

    def test_commands_are_completed_with_verbs_options_choices_and_presets(self):
        def words(*so_far):
            return self.done("complete", "--", *so_far).split()
        self.assertEqual(words("sim"), ["simulate"])
        self.assertNotIn("complete", words(""))
        self.assertEqual(words("schedule", "sh"), ["show"])
        self.assertIn("h100", words("plan", "llama-3-8b", "h1"))
        self.assertIn("llama-3-8b", words("plan", "llama"))
        self.assertEqual(words("plan", "llama-3-8b", "h100", "--space", ""), ["usual", "wide"])
        self.assertIn("megatron-core", words("plan", "--stack", "mega"))
        self.assertIn("--global-batch", words("plan", "--glo"))
        self.assertIn("zb-h1", words("schedule", "show", "zb"))
        self.assertEqual(words("memory", "pl"), [])

    def test_the_scripts_are_read_by_their_shells(self):
        for shell in ("bash", "zsh"):
            script = self.write(f"plumb.{shell}", self.done("completion", shell))
            if shutil.which(shell):
                self.assertEqual(subprocess.run([shell, "-n", script]).returncode, 0)
        self.refused(2, "completion", "fish", says=["fish"])

    def test_the_manual_has_every_verb_and_option_and_is_read_by_man(self):
        page = self.done("man")
        for verb in self.all_verbs():
            if verb[0] != "man":
                self.assertIn(".SS plumb " + " ".join(verb).replace("-", "\\-"), page)
        self.assertIn("\\-\\-global\\-batch", page)
        if shutil.which("groff"):
            said = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stderr), (0, ""))


if __name__ == "__main__":
    run_cases()

"""Runs the command-line tool: Python's arguments become its words, and its JSON becomes a dictionary."""

import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys

_log = logging.getLogger("plumb")

_NO_FEASIBLE_ANSWER = 3  # the tool's exit code; the answer then says what is nearest


class PlumbError(Exception):
    """The tool's sentence about a question that it cannot answer, and its exit code."""

    def __init__(self, sentence, exit_code):
        super().__init__(sentence)
        self.exit_code = exit_code


def executable():
    """Returns the path of the tool: $PLUMB if it is set, else the one of this package, else the first in $PATH."""
    own = pathlib.Path(__file__).with_name("plumb")
    found = os.environ.get("PLUMB") or (str(own) if own.exists() else shutil.which("plumb"))
    if not found:
        raise PlumbError("there is no plumb in this package or in PATH: set PLUMB to its path", 1)
    return found


def words_of(verb, arguments, options):
    """Returns the words of a command line."""
    words = [*verb.split(), *(os.fspath(each) for each in arguments)]
    for name, value in options.items():
        option = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [value]
        for each in values:
            if each is True:
                words.append(option)
            elif isinstance(each, dict):
                words += [option, ",".join(f"{key}={_spelled(one)}" for key, one in each.items())]
            elif each is not None and each is not False:
                words += [option, _spelled(each)]
    return words


def _spelled(value):
    if isinstance(value, bool):
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def run(words):
    """Returns what the tool prints for a command line.

    Its notes go to the logger "plumb". Raises PlumbError where the tool refuses.
    """
    done = subprocess.run([executable(), *words], capture_output=True, text=True, encoding="utf-8")
    notes = done.stderr.strip()
    if done.returncode != 0 and not (done.returncode == _NO_FEASIBLE_ANSWER and done.stdout):
        raise PlumbError(notes.removeprefix("plumb: "), done.returncode)
    for note in notes.splitlines():
        _log.info(note)
    return done.stdout


def ask(verb, *arguments, **options):
    """Returns the JSON of a verb, e.g. ask("models", "llama-3-8b") or ask("plan", "llama-3-8b", "h100:16", global_batch=128)."""
    return json.loads(run([*words_of(verb, arguments, options), "--json"]))


def main():
    """The command `plumb` of the installed package."""
    os.execv(executable(), ["plumb", *sys.argv[1:]])

#!/usr/bin/env python3
"""Runs every reader with damaged files. None may abort, hang, exit with a code other than 0 to 3, or print a library's
words.

usage: mutations_test.py PLUMB [--mutants N] [--first N] [--only NAME] [--keep FOLDER]
"""
import argparse
import concurrent.futures
import json
import pathlib
import random
import re
import sys
import tempfile

from seeds import SEEDS
from tool import FOREIGN, Tool

WORKERS = 2
SECONDS = 60  # for one command, which is far more than any needs

EXTREMES = [0, -1, 1, 2, 0.5, -0.5, 1e-9, 1e9, 1e18, 1e30, 1e300, 1e-300, 5e-324, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64,
            -2**63, 10**30]
WRONG = ["", "x", "x" * 3000, "\u00e9\u0001", "../x", "$x", "(", None, True, False, [], {}, [[]], [0], [None], {"": 0}, {"value": 1},
         {"value": "x", "source": 3}]


DEEP = "@deep@"  # stands for nested brackets that are too deep for Python to write


def places(value, path=()):
    """Yields the path of every place of a document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def changed_json(text, dice):
    """Returns the document with another value, type, key or length in one place."""
    document = json.loads(text)
    path = dice.choice(list(places(document)))
    holder = {"root": document}
    at, key = holder, "root"
    for word in path:
        at, key = at[key], word
    value = at[key]
    what = dice.randrange(8)
    if what <= 2:
        at[key] = dice.choice(EXTREMES)
    elif what == 3:
        at[key] = dice.choice(WRONG)
    elif what == 4:
        at[key] = DEEP
    elif what == 5 and path:
        del at[key]
    elif what == 6 and isinstance(value, list):
        at[key] = value * dice.choice([2, 50]) if value else [0]
    elif what == 7 and isinstance(at, dict) and path:
        at[key + dice.choice(["s", "_", " ", "\u00e9"])] = at.pop(key)
    else:
        at[key] = dice.choice(EXTREMES + WRONG)
    depth = dice.choice([1, 70, 100_000])
    return json.dumps(holder["root"]).replace(f'"{DEEP}"', "[" * depth + "0" + "]" * depth)


def changed_numbers(text, dice):
    numbers = list(re.finditer(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", text))
    if not numbers:
        return text[: len(text) // 2]
    for number in dice.sample(numbers, min(len(numbers), dice.choice([1, 1, 3])))[:1]:
        text = text[:number.start()] + dice.choice([*map(str, EXTREMES), "1e999", "-1e999", "nan", "inf", "0x10", "1.2.3", "--1", "", "9" * 400]
                                                   ) + text[number.end():]
    return text


def changed_lines(text, dice):
    lines = text.splitlines(keepends=True)
    at = dice.randrange(len(lines))
    what = dice.randrange(5)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, dice.choice(lines))
    elif what == 2:
        other = dice.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif what == 3:
        words = re.split(r"([\s,:=\"]+)", lines[at])
        words[dice.randrange(len(words))] = dice.choice(["", "x", "-", ",,,", "\"", "\t", "0F0", "\u00e9", "a" * 5000])
        lines[at] = "".join(words)
    else:
        lines[at] = lines[at].rstrip("\n") + lines[at]
    return "".join(lines)


def changed_bytes(contents, dice):
    contents = bytearray(contents)
    for _ in range(dice.choice([1, 1, 2, 8])):
        at = dice.randrange(len(contents) + 1)
        what = dice.randrange(5)
        if what == 0 and at < len(contents):
            contents[at] ^= 1 << dice.randrange(8)
        elif what == 1:
            contents[at:at + dice.choice([1, 4, 64])] = b""
        elif what == 2:
            contents[at:at] = dice.randbytes(dice.choice([1, 4, 16]))
        elif what == 3:
            contents[at:at] = contents[max(0, at - 40):at]
        elif what == 4 and dice.random() < 0.3:
            del contents[at:]
        if not contents:
            break
    return bytes(contents)


def mutant(contents, seed, number):
    """Returns the damaged contents, which depend on the seed's name and the number alone, on any machine."""
    dice = random.Random(f"{seed.name}:{number}")
    try:
        text = contents.decode()
    except UnicodeDecodeError:
        return changed_bytes(contents, dice)
    if "\0" in text:
        return changed_bytes(contents, dice)
    ways = [changed_numbers, changed_numbers, changed_lines]
    if seed.file.endswith(".json"):
        ways = [changed_json, changed_json, changed_json, changed_numbers, changed_lines]
    way = dice.choice([*ways, None])
    return changed_bytes(contents, dice) if way is None else way(text, dice).encode(errors="surrogatepass")


def fault_of(code, stdout, stderr):
    """Returns the fault of an answer, or an empty text if it has none."""
    if code is None:
        return f"took longer than {SECONDS} s"
    if code not in (0, 1, 2, 3):
        return f"exit code {code}"
    foreign = FOREIGN.search(stdout + stderr)
    if foreign:
        return f'says "{foreign.group()}"'
    if code != 0 and not (stdout + stderr).strip():
        return "says nothing"
    return ""


class Run:
    def __init__(self, arguments, seeds_folder):
        self.tool = Tool(arguments.plumb)
        self.keep = arguments.keep
        self.seeds_folder = pathlib.Path(seeds_folder)
        self.tool.environment["SEEDS"] = str(self.seeds_folder)

    def make_seeds(self):
        """Writes all seeds, and returns those that are not accepted unchanged."""
        refused = []
        for seed in SEEDS:
            if seed.contents is not None:
                contents = seed.contents if isinstance(seed.contents, bytes) else seed.contents.encode()
                (self.seeds_folder / seed.file).write_bytes(contents)
        for seed in SEEDS:
            if seed.made_by:
                code, stdout, stderr = self.tool.answer(seed.made_by, self.seeds_folder, SECONDS)
                if code != 0:
                    refused.append(f"{seed.name}: {seed.made_by}: {stdout[-200:]}{stderr[-500:]}")
        return refused

    def contents(self, seed):
        if seed.contents is None:
            return (self.seeds_folder / seed.file).read_bytes()
        return seed.contents if isinstance(seed.contents, bytes) else seed.contents.encode()

    def answer(self, seed, contents):
        with tempfile.TemporaryDirectory(prefix="plumb-mutant-") as folder:
            (pathlib.Path(folder) / seed.file).write_bytes(contents)
            return self.tool.answer(seed.command, folder, SECONDS)

    def try_seed(self, seed):
        code, stdout, stderr = self.answer(seed, self.contents(seed))
        return "" if code == 0 else f"{seed.name}: exit code {code}: {stdout[-200:]}{stderr[-500:]}"

    def try_mutant(self, seed, number):
        contents = mutant(self.contents(seed), seed, number)
        code, stdout, stderr = self.answer(seed, contents)
        fault = fault_of(code, stdout, stderr)
        if fault and self.keep:
            folder = pathlib.Path(self.keep) / f"{seed.name.replace(' ', '-')}-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / seed.file).write_bytes(contents)
        return f"{seed.name} {number}: {fault}: {seed.command}\n  {(stdout + stderr)[-300:]!r}" if fault else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb")
    parser.add_argument("--mutants", type=int, help="of each seed (default: 5, or 2 of a sanitized tool, which takes longer)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--only", default="", help="seeds with this in their name")
    parser.add_argument("--keep", default="", help="a folder for the files that failed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plumb-seeds-") as folder, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        run = Run(arguments, folder)
        mutants = arguments.mutants or (2 if run.tool.sanitized else 5)
        numbers = range(arguments.first, arguments.first + mutants)
        faults = run.make_seeds()
        seeds = [seed for seed in SEEDS if arguments.only in seed.name]
        if not faults:
            faults = [fault for fault in pool.map(run.try_seed, seeds) if fault]
        tried = len(seeds)
        if faults:
            print("seeds must be accepted as they are:\n" + "\n".join(faults))
        else:
            jobs = [(seed, number) for seed in seeds for number in numbers]
            tried += len(jobs)
            for fault in pool.map(lambda job: run.try_mutant(*job), jobs):
                if fault:
                    faults.append(fault)
                    print(fault, flush=True)
    print(f"[cases] {tried - len(faults)} passed, {len(faults)} failed")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

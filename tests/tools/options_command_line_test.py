#!/usr/bin/env python3
"""Checks every option that `--help` lists for the verbs that make and simulate schedules: an option that is accepted
changes the answer, or it is refused. A new option is covered at once, and fails until VALUES has a value for it.

usage: options_command_line_test.py PLUMB
"""
import concurrent.futures
import os
import re

from command_line import CommandLineTest, plumb, run_cases

COSTS = "f=1,i=1,w=1,r=1,c=0.5,x=0.5,u=0.25,g=0.25,o=0.125,mib=1,gb_per_s=1"

# An option has a value other than its default, and other options that it needs, which the compared answer has too.
VALUES = {
    "--ranks": "6", "--microbatches": "20", "--chunks": "3", "--group": "8", "--slices": "2", "--batch": "8",
    "--node-ranks": "2",
    "--vertical-sync": None, "--memory": "2", "--lenient": None, "--checkpoint": "always", "--offload": "1",
    "--offload-stages": "1",
    "--shard": "1", "--prefetch": (None, "--shard", "1"), "--lowering": "pytorch",
    "--receives": ("late", "--sends", "rendezvous"), "--sends": ("rendezvous", "--receives", "late"),
    "--costs": COSTS.replace("f=1", "f=3"), "--output": "FILE", "--lowered": None, "--max-activations": "1",
    "--released-at-i": ("0.5", "--max-activations", "6"), "--objective": "makespan", "--placement": "chain", "--effort": "1000", "--time-limit": "0.001", "--solver-nodes": "100",
    "--certificate": "FILE.json", "--curve": None, "--svg": ("FILE.svg", "--curve"),
    "--json": None, "--draw": None, "--verbose": None, "--trace": "FILE.json", "--html": "FILE.html", "--noise": "cv=0.1", "--slow": "rank=0:0.5",
    "--burst-kib": "64", "--global-batch": "64", "--seq": "128", "--precision": "fp32", "--stack": "megatron-core",
    "--fp8-recipe": ("rowwise", "--precision", "fp8", "--stack", "torchtitan"),
    "--optimizer": "sgd", "--layout": "pp=2", "--split": "2,2", "--links": "private", "--unfolded": None,
    "--degrade": "nic:node0=0.5", "--topology": "wires.json", "--meshes": "tp1,tp1", "--reshard": "direct", "--schedule": "gpipe",
}

# An option of a verb may leave the answer unchanged for this reason.
SAME = {
    ("schedule search", "--solver-nodes"): "a solver is asked where the search leaves a question open",
    ("simulate", "--sends"): "a schedule whose receives are posted in time does not wait",
    ("simulate", "--receives"): "a schedule whose receives are posted in time does not wait",
    ("schedule convert", "--lowered"): "a file may be lowered already",
    ("schedule make", "--lowered"): "a file may be lowered already",
    ("schedule show", "--offload"): "a move that hides beside computing moves no compute action",
    ("schedule show", "--offload-stages"): "a move that hides beside computing moves no compute action",
    ("schedule check", "--sends"): "every schedule of the catalogue runs under any of them",
    ("schedule check", "--receives"): "every schedule of the catalogue runs under any of them",
    ("schedule check", "--group"): "interleaved is valid with any group",
    ("schedule check", "--prefetch"): "a rank with one stage has nothing to gather ahead",
    ("schedule check", "--lenient"): "a file without faults is read alike",
    ("schedule search", "--effort"): "a search that reaches its bound has spent no more",
    ("schedule search", "--time-limit"): "a search that reaches its bound soon has no need of a limit",
    ("simulate", "--prefetch"): "a rank with one stage has nothing to gather ahead",
    ("schedule show", "--prefetch"): "a rank with one stage has nothing to gather ahead",
    ("schedule convert", "--lenient"): "a file without faults is read alike",
    ("schedule make", "--lenient"): "a file without faults is read alike",
    ("schedule show", "--lenient"): "a file without faults is read alike",
}
SAME_OF = {("forward-only", "--max-activations"): "it holds no activation behind its forward",
           ("forward-only", "--offload"): "nothing waits for a backward",
           ("forward-only", "--offload-stages"): "nothing waits for a backward",
           ("forward-only", "--burst-kib"): "what 64 KiB at once save of 20 s is less than three digits show"}
NO_DIFFERENCE_IN = {"plan": {
    "--links": "few transfers meet", "--unfolded": "one replica stands for all, by proof", "--sends": "a plan's receives are posted in time",
    "--receives": "a plan's receives are posted in time",
    "--seq": "that of the model", "--meshes": "meshes that are all alike are the plain layout",
    "--degrade": "one node sends nothing through its NICs"}}

MADE = {
    "1f1b": ("-p", "4", "-m", "16"),
    "interleaved": ("-p", "4", "-m", "16", "-v", "2"),
    "zb-auto": ("-p", "4", "-m", "16"),
    "seq1f1b": ("-p", "4", "-m", "16"), "svpp": ("-p", "4", "-m", "16"),
    "pipedream": ("-p", "4", "-m", "16"),
    "pipedream-2bw": ("-p", "4", "-m", "16"),
    "forward-only": ("-p", "4", "-m", "16"),
}
SHORT = {"-p": "--ranks", "-m": "--microbatches", "-v": "--chunks"}


def options_of(*verb):
    """Returns the long names that `--help` lists."""
    found = []
    for line in plumb(*verb, "--help").stdout.splitlines():
        match = re.match(r"  (-[-\w]+(?:,-[-\w]+)*)", line)
        if match:
            found.append([name for name in match.group(1).split(",") if name.startswith("--")][0])
    return [name for name in found if name not in ("--help", "--help-all")]


class Options(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "mine.txt"
        self.done("schedule", "make", "1f1b", "-p", 4, "-m", 16, "-o", self.text)
        self.lowered = self.folder / "lowered.txt"
        self.done("schedule", "make", "1f1b", "-p", 4, "-m", 16, "--lowered", "-o", self.lowered)
        self.sloppy = self.write("sloppy.csv", "0F0, 0F1, 0F2, 0B0, 0B1, 0B2 ,,\n")
        self.answers = {}
        self.files = 0

    def answer(self, command):
        """Returns the exit code, the printed text, the written files without their names, and stderr."""
        if command in self.answers:
            return self.answers[command]
        self.files += 1
        path = self.folder / f"written-{self.files}"
        words = [word.replace("FILE", str(path)) for word in command]
        if words[:2] == ["schedule", "show"]:
            words = [word + ".svg" if word == str(path) else word for word in words]
        elif words[0] == "schedule":
            words = [word + ".txt" if word == str(path) else word for word in words]
        result = plumb(*words)
        written = "".join(file.read_text() for file in sorted(self.folder.glob(path.name + "*")))
        self.assertIn(result.returncode, (0, 1, 2, 3), (words, result.stderr))
        self.answers[command] = (result.returncode, result.stdout, written, result.stderr)
        return self.answers[command]

    def check(self, verb, base, option, named=None):
        """Returns the fault of the option behind that command, or None."""
        value, *needs = VALUES[option] if isinstance(VALUES[option], tuple) else (VALUES[option],)
        replaced = list(base)
        for short, long in SHORT.items():
            if long == option and short in replaced:
                at = replaced.index(short)
                del replaced[at:at + 2]
        for name in (option, *needs[:1]):
            if name in replaced:
                at = replaced.index(name)
                del replaced[at:at + 2]
        held_against = (*verb.split(), *(base if not needs else (*replaced, *needs)))
        command = (*verb.split(), *replaced, *needs, option, *([] if value is None else [value]))
        code, printed, written, said = self.answer(tuple(map(str, command)))
        if code != 0:
            return None if "plumb: " in said or code == 1 else f"{command}: exit {code}, {said}"
        before = self.answer(tuple(map(str, held_against)))
        has_reason = (verb, option) in SAME or option in NO_DIFFERENCE_IN.get(named, {})
        if (code, printed, written) != before[:3] or has_reason or any((word, option) in SAME_OF for word in base):
            return None
        return f"{' '.join(map(str, command))}: accepted, and the answer is the same"

    def check_all(self, cases):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            faults = [fault for fault in pool.map(lambda case: self.check(*case), cases) if fault]
        self.assertEqual(faults, [], "\n".join(faults))

    def cases(self, verb, bases, named=None):
        options = options_of(*verb.split())
        self.assertGreater(len(options), 0)
        unknown = [option for option in options if option not in VALUES]
        self.assertEqual(unknown, [], f"{verb}: give VALUES one for each new option")
        return [(verb, base, option, named) for base in bases for option in options]

    def test_an_option_of_a_schedule_verb_changes_its_answer_or_is_refused(self):
        bases = [(name, *numbers) for name, numbers in MADE.items()] + [(self.text,), (self.lowered,), (self.sloppy,)]
        for verb in ("make", "convert", "check"):
            with self.subTest(verb):
                self.check_all(self.cases(f"schedule {verb}", bases))
        with self.subTest("show"):
            self.check_all(self.cases("schedule show", [(*base, "--costs", COSTS) for base in bases]))
        with self.subTest("search"):
            costs = ("--costs", "f=1,i=1.5,w=0.8,c=0.1")
            self.check_all(self.cases("schedule search", [(*base, *costs) for base in bases if base[0] in ("1f1b", "zb-auto", self.text)]))
            self.check_all(self.cases("schedule search", [("-p", "4", "-m", "6", "-v", "2", "--effort", "100k", *costs)]))
        self.check_all(self.cases("schedule list", [()]))

    def test_an_option_of_simulating_a_schedule_changes_its_answer_or_is_refused(self):
        bases = [("--schedule", name, *numbers, "--costs", COSTS) for name, numbers in MADE.items()]
        bases += [("--schedule", "1f1b", "-p", "4", "-m", "16", "--costs", "f=1,b=2"), ("--schedule", self.text, "--costs", COSTS)]
        self.write("wires.json", "{}")
        forms = ("--json", "--verbose")  # the other options are held against the whole answer
        self.check_all([case for case in self.cases("simulate", bases) if case[2] in forms])
        whole = [(*base, "--verbose") for base in bases]
        self.check_all([case for case in self.cases("simulate", whole) if case[2] not in forms])

    def test_an_option_of_simulating_a_plan_changes_its_answer_or_is_refused(self):
        plan = self.folder / "plan.json"
        question = ("gpt-nano", "h100:2", "--global-batch", "16", "--layout", "pp=2,mbs=1")
        self.done("plan", *question, "-o", plan)
        self.write("wires.json", "{}")
        self.check_all(self.cases("simulate", [(plan,), question], "plan"))


if __name__ == "__main__":
    run_cases()

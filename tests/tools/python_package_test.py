#!/usr/bin/env python3
"""Checks the Python package in tools/python: the keys of the tool's answers are those that its typed dictionaries
promise, timelines are the simulated ones, and a refusal is the tool's sentence.

usage: python_package_test.py PLUMB
"""
import os
import pathlib
import sys
import typing

from command_line import PLUMB, CommandLineTest, run_cases

os.environ["PLUMB"] = PLUMB
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "python"))
import plumb  # noqa: E402
from plumb.tool import words_of  # noqa: E402


def faults(value, promised, place="answer"):
    """Yields where a value is not what a type promises."""
    origin, parts = typing.get_origin(promised), typing.get_args(promised)
    if promised is typing.Any:
        return
    if origin is typing.Union:
        if not any(not list(faults(value, part, place)) for part in parts):
            yield from faults(value, next(part for part in parts if part is not type(None)), place)
    elif origin is list:
        if not isinstance(value, list):
            yield f"{place} is no list: {value!r}"
            return
        for number, each in enumerate(value):
            yield from faults(each, parts[0], f"{place}[{number}]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{place} is no object: {value!r}"
            return
        for key, each in value.items():
            yield from faults(each, parts[1], f"{place}.{key}")
    elif typing.is_typeddict(promised):
        if not isinstance(value, dict):
            yield f"{place} is no object: {value!r}"
            return
        types = typing.get_type_hints(promised)
        for key in promised.__required_keys__ - value.keys():
            yield f"{place} lacks {key}"
        for key, each in value.items():
            if key not in types:
                yield f"{place} has {key}, which is not promised"
            else:
                yield from faults(each, types[key], f"{place}.{key}")
    elif promised is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            yield f"{place} is no number: {value!r}"
    elif not isinstance(value, promised) or (promised is int and isinstance(value, bool)):
        yield f"{place} is no {promised.__name__}: {value!r}"


class PythonPackage(CommandLineTest):
    def keeps(self, answer, promised):
        self.assertEqual(list(faults(answer, promised)), [])
        return answer

    def test_a_broken_promise_is_found(self):
        self.assertEqual(list(faults({"id": 3, "more": 1}, plumb.answers.SkippedRow)),
                         ["answer lacks reason", "answer.id is no str: 3", "answer has more, which is not promised"])

    def test_answers_have_the_promised_keys(self):
        file = self.folder / "plan.json"
        planned = self.keeps(plumb.plan("llama-3-8b", "h100:16", global_batch=128, output=file), plumb.PlanAnswer)
        self.keeps(plumb.plan("mixtral-8x7b", "h100:16", global_batch=64, objective="cost", top=3), plumb.PlanAnswer)
        self.keeps(plumb.plan("llama-3-70b", "h100:1", global_batch=8), plumb.PlanAnswer)
        simulated = self.keeps(plumb.simulate(file, noise="cv=0.05"), plumb.SimulationAnswer)
        self.assertEqual(simulated["step_time_s"], planned["best"]["prediction"]["step_time_s"])
        self.keeps(plumb.simulate("llama-3-8b", "h100:16", global_batch=128, layout={"dp": 2, "tp": 2, "pp": 4, "mbs": 1, "sp": True}),
                   plumb.SimulationAnswer)
        self.keeps(plumb.simulate(schedule="1f1b", p=4, m=8, costs={"f": 1, "b": 2, "c": 0.1}), plumb.SimulationAnswer)
        self.keeps(plumb.memory(file), plumb.MemoryAnswer)
        rows = self.keeps(plumb.whatif(file, vary=["training.global_batch=32,128", "gpus=8,16"]), plumb.WhatifAnswer)["rows"]
        self.assertEqual(len(rows), 4)
        self.keeps(plumb.budget("llama-3-8b", "h100:64", global_batch=512, tokens=1e12), plumb.BudgetAnswer)
        self.assertEqual(list(faults(plumb.schedules(), typing.List[plumb.CatalogueEntry])), [])

    def test_a_scored_source_has_the_promised_keys(self):
        shared = pathlib.Path(os.environ.get("PLUMB_SHARED", pathlib.Path(__file__).resolve().parents[3] / "shared"))
        if not (shared / "published").is_dir():
            self.skipTest("there are no measured rows: ../shared is not there")
        self.keeps(plumb.score(shared / "published" / "bigscience_bloom176b.json"), plumb.ScoreAnswer)

    def test_a_schedule_is_the_one_of_its_name(self):
        schedule = self.keeps(plumb.schedule("1f1b", p=2, m=2), plumb.Schedule)
        self.assertEqual(schedule["ranks"], ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"])

    def test_a_timeline_has_the_spans_of_the_simulation(self):
        question = dict(schedule="zb-h1", p=4, m=8, costs="f=1,i=1,w=1,c=0.1")
        spans, answer = plumb.timeline(**question), plumb.simulate(**question)
        for rank in answer["ranks"]:
            busy = sum(length for length, lane, where in zip(spans.duration_s, spans.lane, spans.rank)
                       if lane == "compute" and where == rank["rank"])
            self.assertAlmostEqual(busy, rank["busy_s"], places=9)
        self.assertEqual(max(map(sum, zip(spans.start_s, spans.duration_s))), answer["makespan_s"])
        self.assertEqual({stage for stage, action in zip(spans.stage, spans.action) if action == "W"}, {0, 1, 2, 3})

    def test_a_refusal_is_the_sentence_of_the_tool(self):
        with self.assertRaises(plumb.PlumbError) as refused:
            plumb.plan("llama-3-9b", "h100:16", global_batch=128)
        self.assertEqual(refused.exception.exit_code, 1)
        self.assertIn("llama-3-9b", str(refused.exception))
        self.assertNotIn("plumb:", str(refused.exception))

    def test_values_become_words(self):
        self.assertEqual(words_of("schedule list", ["a"], {"p": 4, "verbose": True, "quiet": False, "stack": None,
                                                           "layout": {"tp": 2, "sp": True}, "vary": ["a=1", "b=2"]}),
                         ["schedule", "list", "a", "-p", "4", "--verbose", "--layout", "tp=2,sp=1", "--vary", "a=1", "--vary", "b=2"])


if __name__ == "__main__":
    run_cases()

"""A function for each question; its answer is the tool's JSON (`plumb help VERB` lists the options)."""

import json
import os
import pathlib
import tempfile

from . import answers
from .timeline import Timeline, read_timeline
from .tool import ask, run, words_of


def plan(model, cluster, **options) -> answers.PlanAnswer:
    """Searches the best layout of a model on a cluster.

    Options are those of `plumb plan`: global_batch (needed), layout={"tp": 4}, stack, space, top, objective and others.
    `output` names a file for the plan, which the other functions take.
    """
    return ask("plan", model, cluster, **options)


def simulate(*question, **options) -> answers.SimulationAnswer:
    """Predicts a plan file, a model on a cluster, or (without words) the schedule that `schedule` names."""
    return ask("simulate", *question, **options)


def timeline(*question, **options) -> Timeline:
    """Predicts as `simulate` does, and returns each span of the step as arrays."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.json")
        run(words_of("simulate", question, {**options, "trace": path}))
        return read_timeline(path)


def memory(*question, **options) -> answers.MemoryAnswer:
    """Returns the bytes of each rank by kind and over time, of a plan file or a model on a cluster."""
    return ask("memory", *question, **options)


def whatif(*question, **options) -> answers.WhatifAnswer:
    """Asks the question again for each value of vary=["network.bandwidth_gb_per_s=50,100", ...]."""
    return ask("whatif", *question, **options)


def budget(model, cluster, **options) -> answers.BudgetAnswer:
    """Returns days, money, energy and failures of a training: tokens, deadline, money and devices as far as given."""
    return ask("budget", model, cluster, **options)


def score(*files, **options) -> answers.ScoreAnswer:
    """Predicts the runs of files of measured rows, and returns how far off each prediction is."""
    return ask("score", *files, **options)


def schedules() -> "list[answers.CatalogueEntry]":
    """Returns every schedule of the catalogue."""
    return ask("schedule list")["schedules"]


def schedule(name, **options) -> answers.Schedule:
    """Returns a schedule by its name or file, e.g. schedule("1f1b", p=4, m=8): the order of actions on each rank."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "schedule.json")
        run(words_of("schedule convert", [name], {**options, "output": path}))
        return json.loads(path.read_text(encoding="utf-8"))

"""Plumb from Python: each function asks the command-line tool and returns its JSON as a typed dictionary.

    >>> import plumb
    >>> answer = plumb.plan("llama-3-8b", "h100:16", global_batch=128)
    >>> answer["best"]["prediction"]["step_time_s"]

Names of keyword arguments are those of the tool's options, with underscores (`plumb help plan` lists them). True sets
an option without a value, a list gives it several values or repeats it as the tool does, and a dictionary becomes
`key=value` pairs. Times are in seconds, sizes in bytes. A question that has no answer raises `PlumbError` with the
tool's sentence.
"""

from .answers import Answer, BudgetAnswer, Layout, MemoryAnswer, PlanAnswer, Prediction, Schedule, ScoreAnswer, SimulationAnswer
from .answers import CatalogueEntry, WhatifAnswer
from .timeline import Timeline, read_timeline
from .tool import PlumbError, ask, executable
from .verbs import budget, memory, plan, schedule, schedules, score, simulate, timeline, whatif

__all__ = [
    "Answer", "BudgetAnswer", "CatalogueEntry", "Layout", "MemoryAnswer", "PlanAnswer", "PlumbError", "Prediction",
    "Schedule", "ScoreAnswer", "SimulationAnswer", "Timeline", "WhatifAnswer", "ask", "budget", "executable", "memory",
    "plan", "read_timeline", "schedule", "schedules", "score", "simulate", "timeline", "whatif",
]

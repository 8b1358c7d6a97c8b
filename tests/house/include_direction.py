#!/usr/bin/env python3
"""Checks that includes follow the arrows between the top folders, and between the rooms inside each folder.

usage: include_direction.py ROOT
"""
import pathlib
import re
import sys

# A folder may include itself and the folders of its list; "folder/file.h" stands for that file alone.
ALLOWED = {
    "schedules": [],
    "traces": ["schedules"],
    "simulator": ["schedules", "traces"],
    "kernels": [],
    "planner": ["schedules", "traces", "simulator", "kernels/layer.h"],
    "executor": ["schedules", "traces", "kernels"],
    "tools": ["schedules", "traces", "simulator", "kernels", "planner", "executor"],
}
# A room may include itself and the rooms of its list, which are of the same folder.
ROOMS = {
    "schedules/bounds": ["schedules"],
    "schedules/forms": ["schedules"],
    "schedules/passes": ["schedules", "schedules/dependencies"],
    "schedules/rules": ["schedules", "schedules/dependencies"],
    "schedules/search": ["schedules", "schedules/bounds", "schedules/forms", "schedules/generators",
                         "schedules/synthesis"],
    "schedules/synthesis": ["schedules", "schedules/bounds", "schedules/dependencies"],
    "schedules/generators": ["schedules", "schedules/bounds", "schedules/synthesis"],
    "schedules/dependencies": ["schedules"],
    "simulator": ["simulator/compile", "simulator/engine", "simulator/memory", "simulator/path"],
    "simulator/network": ["simulator", "simulator/network/engine", "simulator/network/topology", "simulator/noise",
                          "simulator/path"],
    "simulator/network/engine": ["simulator/compile", "simulator/engine", "simulator/network/flow",
                                 "simulator/network/topology", "simulator/noise", "simulator/path"],
    "simulator/network/placement": ["simulator/network/topology"],
    "simulator/network/topology": ["simulator/network/flow"],
    "simulator/engine": ["simulator/compile"],
    "simulator/memory": ["simulator/compile", "simulator/engine"],
    "simulator/noise": ["simulator/compile", "simulator/engine"],
    "simulator/path": ["simulator/engine"],
    "kernels": ["kernels/layer", "kernels/layer/emit", "kernels/layer/program"],
    "kernels/layer/emit": ["kernels/layer", "kernels/layer/program"],
    "kernels/layer/program": ["kernels/layer"],
    "kernels/cpu": ["kernels"],
    "kernels/cpu/attention": ["kernels/cpu", "kernels/cpu/products"],
    "kernels/cpu/images": ["kernels/cpu/products"],
    "kernels/cpu/losses": ["kernels/cpu"],
    "kernels/cpu/optimizers": ["kernels"],
    "kernels/simt": ["kernels", "kernels/cpu"],
    "kernels/simt/attention": ["kernels/cpu/attention", "kernels/simt"],
    "kernels/simt/experts": ["kernels/cpu", "kernels/simt"],
    "kernels/simt/images": ["kernels/cpu/images", "kernels/simt"],
    "kernels/simt/losses": ["kernels/cpu/losses", "kernels/simt"],
    "kernels/simt/optimizers": ["kernels", "kernels/cpu/optimizers", "kernels/simt"],
    "kernels/cuda": ["kernels/simt", "kernels/simt/experts", "kernels/simt/images", "kernels/simt/losses",
                     "kernels/simt/optimizers"],
    "planner/spec": ["planner/graph"],
    "planner/spec/huggingface": ["planner/spec"],
    "planner/price/kernel": ["planner/spec"],
    "planner/price/collective": ["planner/price/kernel", "planner/spec"],
    "planner/price/framework": ["planner/price/kernel", "planner/spec"],
    "planner/price/memory": ["planner/graph", "planner/price/framework", "planner/spec"],
    "planner/price/layer": ["planner/graph", "planner/price/collective", "planner/price/framework",
                            "planner/price/kernel", "planner/price/memory", "planner/spec"],
    "planner/price": ["planner/partition", "planner/price/collective", "planner/price/kernel", "planner/price/layer",
                      "planner/price/memory", "planner/spec"],
    "planner/evaluate": ["planner/partition", "planner/price", "planner/price/collective", "planner/price/layer",
                         "planner/price/memory", "planner/spec"],
    "planner/search": ["planner/evaluate", "planner/price", "planner/price/layer", "planner/spec"],
    "planner/calibrate": ["planner/price/collective", "planner/price/kernel", "planner/search", "planner/spec"],
    "planner/score": ["planner/evaluate", "planner/price/collective", "planner/price/framework",
                      "planner/price/layer", "planner/price/memory", "planner/search", "planner/spec"],
    "executor/transport": ["executor"],
    "executor/division": ["executor/transport"],
    "executor/data": ["executor/division"],
    "executor/training": ["executor", "executor/cpu", "executor/cpu/parameters", "executor/transport"],
    "executor/cpu": ["executor", "executor/cpu/layers", "executor/cpu/parameters", "executor/data",
                     "executor/transport"],
    "executor/cpu/layers": ["executor", "executor/cpu/kernels", "executor/data", "executor/division",
                            "executor/transport"],
    "executor/cpu/parameters": ["executor", "executor/cpu/kernels", "executor/cpu/layers", "executor/division",
                                "executor/training", "executor/transport"],
    "executor": ["executor/cpu/parameters", "executor/data", "executor/division", "executor/training",
                 "executor/transport"],
    "executor/timed": ["executor", "executor/training", "executor/transport"],
    "executor/measure": ["executor", "executor/cpu/kernels", "executor/timed", "executor/transport"],
    "executor/nccl": ["executor", "executor/device", "executor/device_plan", "executor/division", "executor/measure",
                      "executor/training", "executor/transport"],
    "executor/device_plan": ["executor", "executor/nccl", "executor/training", "executor/transport"],
    "executor/device/exchange": ["executor", "executor/cpu/parameters", "executor/device/calls",
                                 "executor/device/kernels", "executor/device_plan", "executor/division",
                                 "executor/nccl", "executor/transport"],
    "executor/device/layers": ["executor/cpu/layers", "executor/device/exchange", "executor/device/kernels",
                               "executor/device/stage", "executor/division"],
    "executor/device/stage": ["executor", "executor/cpu/parameters", "executor/device", "executor/device/calls",
                              "executor/device/exchange", "executor/device/kernels", "executor/device/layers",
                              "executor/division", "executor/training"],
    "executor/device/calls": ["executor/device", "executor/device/exchange", "executor/device/kernels",
                              "executor/device_plan", "executor/transport"],
    "executor/device/measure": ["executor/device", "executor/device/kernels", "executor/device/layers",
                                "executor/device/stage", "executor/measure"],
    "executor/device": ["executor", "executor/data", "executor/device/calls", "executor/device/kernels",
                        "executor/device/layers", "executor/device/measure", "executor/device/stage",
                        "executor/device_plan", "executor/division", "executor/nccl", "executor/training",
                        "executor/transport"],
    "executor/cuda": ["executor/device", "executor/device/kernels", "executor/device_plan", "executor/measure",
                      "executor/nccl", "executor/transport"],
    "executor/mpi": ["executor", "executor/measure", "executor/nccl", "executor/timed", "executor/training",
                     "executor/transport"],
    "tools/inputs": ["tools/io"],
    "tools/runs": ["tools/inputs", "tools/io"],
    "tools/reports": ["tools/inputs", "tools/io"],
    "tools/verbs": ["tools/inputs", "tools/io", "tools/machine", "tools/reports", "tools/runs"],
    "tools/verbs/calibrate": ["tools/inputs", "tools/io", "tools/machine", "tools/reports", "tools/runs",
                              "tools/verbs"],
    "tools/command_line": ["tools/inputs", "tools/io", "tools/runs", "tools/verbs"],
    "tools": ["tools/command_line", "tools/io", "tools/machine"],
    "traces/chrome": ["traces", "traces/draw"],
    "traces/compare": ["traces", "traces/draw"],
    "traces/draw": ["traces"],
}

# These rooms still include each other in a circle. The list may only shrink.
TIED = [
    {"executor", "executor/cpu", "executor/cpu/layers", "executor/cpu/parameters", "executor/data",
     "executor/division", "executor/training", "executor/transport"},
    {"executor/device", "executor/device/calls", "executor/device/exchange", "executor/device/layers",
     "executor/device/measure", "executor/device/stage", "executor/device_plan", "executor/nccl"},
]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SOURCES = (".h", ".cpp", ".cu", ".cuh")


def room_of(path):
    return path.rpartition("/")[0]


def includes(root):
    """Yields (including file, line, included file) of all folders."""
    for folder in ALLOWED:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES:
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    match = INCLUDE.match(line)
                    if match:
                        yield str(path.relative_to(root)), number, match.group(1)


def violations(root):
    for path, number, target in includes(root):
        place, folder, room = f"{path}:{number}", path.split("/")[0], room_of(path)
        if not (root / target).is_file():
            yield f"{place}: \"{target}\" is not written from the repository root"
        elif target.split("/")[0] != folder:
            if target.split("/")[0] not in ALLOWED[folder] and target not in ALLOWED[folder]:
                yield f"{place}: {folder} may not include \"{target}\""
        elif room_of(target) != room and room_of(target) not in ROOMS.get(room, []):
            yield f"{place}: the room {room} may not include \"{target}\""


def reached_from(room):
    """Returns all rooms that a room may include, directly or over others."""
    found, left = set(), list(ROOMS.get(room, []))
    while left:
        next_room = left.pop()
        if next_room not in found:
            found.add(next_room)
            left += ROOMS.get(next_room, [])
    return found


def circles():
    """Yields the faults of the table itself: rooms that reach each other must be tied, and tied rooms must reach each
    other."""
    reached = {room: reached_from(room) for room in ROOMS}
    for room in ROOMS:
        tied = next((rooms for rooms in TIED if room in rooms), {room})
        circle = {other for other in reached[room] if room in reached.get(other, ())} | {room}
        for other in sorted(circle - tied):
            yield f"the table ties {room} and {other} in a circle"
        for other in sorted(tied - circle):
            yield f"{room} and {other} are tied no longer: shorten the list"


def main():
    root = pathlib.Path(sys.argv[1])
    found = [*circles(), *violations(root)]
    print("\n".join(found) or "every include follows the arrows")
    sys.exit(1 if found else 0)


main()

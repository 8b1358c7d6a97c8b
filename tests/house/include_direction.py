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
    "kernels/cpu/state_spaces": ["kernels/cpu", "kernels/cpu/products"],
    "kernels/simt": ["kernels", "kernels/cpu"],
    "kernels/simt/attention": ["kernels/cpu/attention", "kernels/simt"],
    "kernels/simt/experts": ["kernels/cpu", "kernels/simt"],
    "kernels/simt/images": ["kernels/cpu/images", "kernels/simt"],
    "kernels/simt/losses": ["kernels/cpu/losses", "kernels/simt"],
    "kernels/simt/optimizers": ["kernels", "kernels/cpu/optimizers", "kernels/simt"],
    "kernels/simt/state_spaces": ["kernels/cpu/state_spaces", "kernels/layer", "kernels/simt"],
    "kernels/cuda": ["kernels/simt", "kernels/simt/experts", "kernels/simt/images", "kernels/simt/losses",
                     "kernels/simt/optimizers", "kernels/simt/state_spaces"],
    "planner/spec": ["planner/graph"],
    "planner/spec/huggingface": ["planner/spec"],
    "planner/price/kernel": ["planner/spec"],
    "planner/price/collective": ["planner/price/kernel", "planner/spec", "planner/threads"],
    "planner/price/framework": ["planner/price/kernel", "planner/spec"],
    "planner/price/memory": ["planner/graph", "planner/price/framework", "planner/spec"],
    "planner/price/layer": ["planner/graph", "planner/price/collective", "planner/price/framework",
                            "planner/price/kernel", "planner/price/memory", "planner/spec"],
    "planner/price": ["planner/partition", "planner/price/collective", "planner/price/kernel", "planner/price/layer",
                      "planner/price/memory", "planner/spec", "planner/threads"],
    "planner/evaluate": ["planner/partition", "planner/price", "planner/price/collective", "planner/price/framework",
                         "planner/price/layer", "planner/price/memory", "planner/spec"],
    "planner/search": ["planner/evaluate", "planner/price", "planner/price/layer", "planner/spec",
                       "planner/threads"],
    "planner/onnx": ["planner/graph", "planner/spec"],
    "planner/shard": ["planner/evaluate", "planner/graph", "planner/partition", "planner/price",
                      "planner/price/collective", "planner/price/layer", "planner/search", "planner/spec"],
    "planner/budget": ["planner/evaluate", "planner/price", "planner/search", "planner/spec"],
    "planner/calibrate": ["planner/logs", "planner/price/collective", "planner/price/kernel", "planner/search",
                          "planner/spec"],
    "planner/logs": ["planner/price/collective"],
    "planner/observe": ["planner/evaluate", "planner/logs", "planner/price", "planner/search", "planner/spec"],
    "planner/exchange": ["planner/exchange/facts", "planner/exchange/forms", "planner/logs", "planner/search"],
    "planner/exchange/chakra": ["planner/evaluate"],
    "planner/exchange/facts": ["planner/exchange/forms", "planner/spec"],
    "planner/score": ["planner/evaluate", "planner/price/collective", "planner/price/framework",
                      "planner/price/layer", "planner/price/memory", "planner/search", "planner/spec",
                      "planner/threads"],
    "executor/cuda_library": ["executor/machines", "executor/measure", "executor/measure/device", "executor/spec",
                              "executor/training", "executor/training/device", "executor/transport",
                              "executor/transport/nccl"],
    "executor/cuda_library/entry": ["executor/cuda_library", "executor/machines/cuda", "executor/measure",
                                    "executor/measure/device", "executor/training/device", "executor/transport",
                                    "executor/transport/nccl"],
    "executor/groups": ["executor/spec/division"],
    "executor/layers": ["executor/spec/division"],
    "executor/layers/device": ["executor/groups", "executor/kernels", "executor/layers", "executor/program/calls",
                               "executor/spec/division"],
    "executor/layers/host": ["executor/kernels", "executor/layers", "executor/spec/data", "executor/spec/division",
                             "executor/transport"],
    "executor/machines": ["executor/groups", "executor/kernels", "executor/program/device", "executor/transport"],
    "executor/machines/cuda": ["executor/kernels", "executor/machines", "executor/program/device",
                               "executor/transport", "executor/transport/nccl"],
    "executor/measure": ["executor/measure/host", "executor/transport", "executor/transport/emulated"],
    "executor/measure/device": ["executor/kernels", "executor/layers/device", "executor/machines", "executor/measure",
                                "executor/parameters/device"],
    "executor/measure/host": ["executor/kernels"],
    "executor/mpi": ["executor/measure", "executor/spec", "executor/timed", "executor/training",
                     "executor/transport/emulated", "executor/transport/mpi"],
    "executor/parameters": ["executor/kernels", "executor/layers", "executor/spec", "executor/spec/division",
                            "executor/transport"],
    "executor/parameters/device": ["executor/groups", "executor/kernels", "executor/layers", "executor/layers/device",
                                   "executor/machines", "executor/parameters", "executor/program/calls",
                                   "executor/spec", "executor/spec/division"],
    "executor/program": ["executor/spec/division", "executor/transport"],
    "executor/program/calls": ["executor/groups", "executor/kernels", "executor/program/device"],
    "executor/program/device": ["executor/groups", "executor/program", "executor/transport"],
    "executor/replay": ["executor/program", "executor/stages", "executor/transport"],
    "executor/spec": ["executor/spec/data", "executor/spec/division"],
    "executor/spec/data": ["executor/spec/division"],
    "executor/stages": ["executor/layers", "executor/parameters", "executor/spec/division", "executor/transport"],
    "executor/stages/device": ["executor/layers/device", "executor/machines", "executor/parameters",
                               "executor/parameters/device", "executor/program/calls", "executor/spec/division"],
    "executor/stages/host": ["executor/layers/host", "executor/parameters", "executor/spec", "executor/spec/data",
                             "executor/stages", "executor/transport"],
    "executor/timed": ["executor/replay", "executor/spec", "executor/stages", "executor/training",
                       "executor/transport", "executor/transport/emulated"],
    "executor/training": ["executor/parameters", "executor/program", "executor/replay", "executor/spec",
                          "executor/spec/division", "executor/stages/host", "executor/transport"],
    "executor/training/device": ["executor/groups", "executor/kernels", "executor/layers/device", "executor/machines",
                                 "executor/parameters", "executor/parameters/device", "executor/program/calls",
                                 "executor/program/device", "executor/spec", "executor/spec/data",
                                 "executor/spec/division", "executor/stages/device", "executor/training",
                                 "executor/transport", "executor/transport/nccl"],
    "executor/transport": ["executor/spec", "executor/spec/division"],
    "executor/transport/emulated": ["executor/transport"],
    "executor/transport/mpi": ["executor/transport", "executor/transport/emulated", "executor/transport/nccl"],
    "executor/transport/nccl": ["executor/groups", "executor/spec", "executor/spec/division", "executor/transport"],
    "tools/inputs": ["tools/io"],
    "tools/runs": ["tools/inputs", "tools/io"],
    "tools/reports": ["tools/inputs", "tools/io", "tools/machine"],
    "tools/pages": ["tools/inputs", "tools/io", "tools/reports"],
    "tools/verbs": ["tools/inputs", "tools/io", "tools/machine", "tools/pages", "tools/reports", "tools/runs"],
    "tools/verbs/calibrate": ["tools/inputs", "tools/io", "tools/machine", "tools/reports", "tools/runs",
                              "tools/verbs"],
    "tools/command_line": ["tools/inputs", "tools/io", "tools/reports", "tools/runs", "tools/verbs"],
    "tools": ["tools/command_line", "tools/io", "tools/machine"],
    "traces/chrome": ["traces", "traces/draw"],
    "traces/compare": ["traces", "traces/draw"],
    "traces/draw": ["traces"],
}

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


def wing_of(room):
    """Returns the room, or the room of the same folder that it lies in: planner/price for planner/price/kernel."""
    return "/".join(room.split("/")[:2])


def reached_from(room, table):
    """Returns all rooms that a room may include, directly or over others."""
    found, left = set(), list(table.get(room, []))
    while left:
        next_room = left.pop()
        if next_room not in found:
            found.add(next_room)
            left += table.get(next_room, [])
    return found


def circles():
    """Yields the faults of the table itself: rooms, or rooms with all that lies in them, that reach each other."""
    wings = {}
    for room, others in ROOMS.items():
        wings.setdefault(wing_of(room), set()).update({wing_of(other) for other in others} - {wing_of(room)})
    for table in (ROOMS, wings):
        reached = {room: reached_from(room, table) for room in table}
        for room in table:
            for other in sorted(reached[room]):
                if room < other and room in reached.get(other, ()):
                    yield f"the table lets {room} and {other} include each other in a circle"


def main():
    root = pathlib.Path(sys.argv[1])
    found = [*circles(), *violations(root)]
    print("\n".join(found) or "every include follows the arrows")
    sys.exit(1 if found else 0)


main()

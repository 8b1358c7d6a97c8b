#!/usr/bin/env python3
"""Breaks a small tree of sources on purpose, one rule at a time. The checks of this folder must find each fault.

usage: house_test.py COMPILER...
"""
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = ("names.py", "include_direction.py", "mirror.py", "prose.py", "headers_alone.py")
HERE = pathlib.Path(__file__).parent
COMPILER = sys.argv[1:]


def header(folder, body, includes=""):
    return f"#pragma once\n{includes}\nnamespace plumb {{ inline namespace {folder} {{\n\n{body}\n\n}}}}  // namespace plumb::{folder}\n"


SOUND = {
    "schedules/action.h": header("schedules", "struct Action {\n  int stage = 0;\n};\n\ninline int twice(int x) {\n  return 2 * x;\n}"),
    "schedules/passes/lower.cpp": header("schedules", "namespace {\n\nconstexpr int kLimit = 3;\n\nint half(int x) {\n  return x / 2;\n}\n\n}  // namespace"),
    "simulator/engine/engine.h": header("simulator", "struct Engine {\n  Action next;\n};", '\n#include "schedules/action.h"\n'),
}
# Each entry breaks a rule: the files that do so, the check, and the words that it must print.
BROKEN = {
    "a type defined twice": (
        {"executor/memory.h": header("executor", "struct Engine {\n  int bytes = 0;\n};")},
        "names.py", "the type Engine is also defined at executor/memory.h"),
    "an inline function defined twice": (
        {"traces/sums.h": header("traces", "inline int twice(int x) {\n  return x + x;\n}")},
        "names.py", "the function twice is also defined at schedules/action.h"),
    "a name outside of its namespace": (
        {"traces/sums.h": "#pragma once\n\nstruct Sum {\n  int value = 0;\n};\n"},
        "names.py", 'traces/sums.h:3: "struct Sum {" stands outside of the namespace of traces/'),
    "the namespace of another folder": (
        {"traces/sums.h": header("simulator", "struct Sum {\n  int value = 0;\n};")},
        "names.py", "open namespace plumb { inline namespace traces { ... here"),
    "one name in two units of a folder": (
        {"schedules/forms.cpp": header("schedules", "namespace {\n\nconstexpr int kLimit = 4;\n\n}  // namespace")},
        "names.py", "kLimit is also a name at schedules/forms.cpp:7"),
    "an include against the arrows": (
        {"schedules/clock.h": header("schedules", "struct Clock {\n  Engine engine;\n};", '\n#include "simulator/engine/engine.h"\n')},
        "include_direction.py", 'schedules may not include "simulator/engine/engine.h"'),
    "an include against the arrows between rooms": (
        {"schedules/clock.h": header("schedules", "struct Clock {\n  int limit = 0;\n};", '\n#include "schedules/passes/limit.h"\n'),
         "schedules/passes/limit.h": header("schedules", "struct Limit {\n  int most = 0;\n};")},
        "include_direction.py", 'the room schedules may not include "schedules/passes/limit.h"'),
    "a test without its source": (
        {"tests/schedules/clock_test.cpp": "int main() {}\n"},
        "mirror.py", "tests/schedules/clock_test.cpp: there is no schedules/clock.h or .cpp"),
    "a comment that leans on nothing": (
        {"schedules/clock.h": header("schedules", "/// Of a rank.\nint ticks();")},
        "prose.py", 'schedules/clock.h:5: the comment begins with "Of a rank."'),
    "a page with a long line": (
        {"schedules/README.md": "# schedules\n\n" + "word " * 30 + "\n"},
        "prose.py", "schedules/README.md:3: 150 characters, at most 120"),
    "a page that names a file that is not there": (
        {"schedules/README.md": "# schedules\n\nSee `schedules/clocks.h`.\n"},
        "prose.py", "schedules/README.md:3: schedules/clocks.h does not exist"),
    "a header that needs another": (
        {"simulator/engine/engine.h": header("simulator", "struct Engine {\n  Action next;\n};")},
        "headers_alone.py", "simulator/engine/engine.h does not compile alone"),
}


def check(script, files):
    with tempfile.TemporaryDirectory() as root:
        for folder in ("schedules", "traces", "simulator", "kernels", "planner", "executor", "tools", "tests"):
            pathlib.Path(root, folder).mkdir()
        for name, text in files.items():
            pathlib.Path(root, name).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(root, name).write_text(text)
        arguments = ["--all", *COMPILER] if script == "headers_alone.py" else []
        return subprocess.run([sys.executable, HERE / script, root, *arguments], capture_output=True, text=True)


def main():
    failures = []
    for script in SCRIPTS:
        sound = check(script, SOUND)
        if sound.returncode != 0:
            failures.append(f"{script} refuses a sound house: {sound.stdout}{sound.stderr}")
    for what, (files, script, expected) in BROKEN.items():
        found = check(script, SOUND | files)
        if found.returncode != 1 or expected not in found.stdout:
            failures.append(f"{what}: {script} says {found.stdout!r}, exit {found.returncode}; expected {expected!r}")
    print("\n".join(failures))
    print(f"[cases] {len(BROKEN) + len(SCRIPTS) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()

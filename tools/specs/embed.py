#!/usr/bin/env python3
"""Turns preset files into C++, so that the tool contains them and runs wherever it is copied.

usage: embed.py OUTPUT.cpp DEPFILE FOLDER PAGES TEXT

FOLDER has models/*.json, clusters/*.json, stacks/*.json, score/*.json, targets/*.json, reliability/*.json and
error_bars.json. PAGES has the style and the scripts of pages. TEXT is a text to train on. DEPFILE names the files and
their folders, so that a preset that is added or removed makes the output anew.
"""
import pathlib
import sys

KINDS = {"models": "kModel", "clusters": "kCluster", "stacks": "kStack", "score": "kMapping", "targets": "kTarget",
         "reliability": "kReliability"}
LONGEST_LITERAL = 8000  # compilers need not accept much longer ones; adjacent literals are joined


def main():
    output, depfile, folder, pages, text_file = sys.argv[1:]
    parts = [*pathlib.Path(pages).glob("*.css"), *pathlib.Path(pages).glob("*.js")]
    folders = [pathlib.Path(folder) / name for name in KINDS]
    bars = pathlib.Path(folder) / "error_bars.json"
    files = [file for one in folders for file in one.glob("*.json")] + [bars, *parts, pathlib.Path(text_file)]
    lines = ['#include "tools/inputs/presets.h"', "", "namespace plumb { inline namespace tools {", "", "const std::vector<Preset>& presets() {",
             "  static const std::vector<Preset> kPresets = {"]
    for path in sorted(files):
        kind = "kErrorBars" if path == bars else "kPage" if path in parts else KINDS.get(path.parent.name, "kText")
        name = path.name if path in parts else path.stem
        text = path.read_text(encoding="utf-8")
        pieces = [text[i : i + LONGEST_LITERAL] for i in range(0, len(text), LONGEST_LITERAL)]
        literal = "\n".join(f'R"plumb({piece})plumb"' for piece in pieces)
        lines.append(f'      {{Preset::Kind::{kind}, "{name}", {literal}}},')
    lines += ["  };", "  return kPresets;", "}", "", "}}  // namespace plumb::tools", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="utf-8")
    inputs = " ".join(str(path).replace(" ", "\\ ") for path in [*folders, pathlib.Path(pages), *files])
    pathlib.Path(depfile).write_text(f"{output}: {inputs}\n", encoding="utf-8")


main()

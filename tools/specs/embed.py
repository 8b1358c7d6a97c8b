#!/usr/bin/env python3
"""Turns preset files into C++: the tool carries them, so that it runs wherever it is copied.

usage: embed.py OUTPUT.cpp FILE...   (models/*.json, clusters/*.json, stacks/*.json, score/*.json; any other file is a text to train on)
"""
import pathlib
import sys

KINDS = {"models": "kModel", "clusters": "kCluster", "stacks": "kStack", "score": "kMapping"}
LONGEST_LITERAL = 8000  # compilers need not take much longer ones; adjacent literals are joined


def main():
    output, *files = sys.argv[1:]
    lines = ['#include "tools/presets.h"', "", "namespace plumb {", "", "const std::vector<Preset>& presets() {",
             "  static const std::vector<Preset> kPresets = {"]
    for path in sorted(pathlib.Path(file) for file in files):
        kind = KINDS.get(path.parent.name, "kText")
        text = path.read_text(encoding="utf-8")
        pieces = [text[i : i + LONGEST_LITERAL] for i in range(0, len(text), LONGEST_LITERAL)]
        literal = "\n".join(f'R"plumb({piece})plumb"' for piece in pieces)
        lines.append(f'      {{Preset::Kind::{kind}, "{path.stem}", {literal}}},')
    lines += ["  };", "  return kPresets;", "}", "", "}  // namespace plumb", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="utf-8")


main()

#!/usr/bin/env python3
"""Turns the preset files into C++: the tool carries them, so that it runs wherever it is copied.

usage: embed.py OUTPUT.cpp FILE.json...   (the folder of a file says its kind: models or clusters)
"""
import pathlib
import sys


def main():
    output, *files = sys.argv[1:]
    lines = ['#include "tools/presets.h"', "", "namespace plumb {", "", "const std::vector<Preset>& presets() {",
             "  static const std::vector<Preset> kPresets = {"]
    for file in sorted(files):
        path = pathlib.Path(file)
        kind = {"models": "kModel", "clusters": "kCluster"}[path.parent.name]
        text = path.read_text(encoding="utf-8")
        # String literals have a length limit in the standard; adjacent ones are joined.
        pieces = [text[i : i + 8000] for i in range(0, len(text), 8000)]
        literal = "\n".join(f'R"plumb({piece})plumb"' for piece in pieces)
        lines.append(f'      {{Preset::Kind::{kind}, "{path.stem}", {literal}}},')
    lines += ["  };", "  return kPresets;", "}", "", "}  // namespace plumb", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="utf-8")


main()

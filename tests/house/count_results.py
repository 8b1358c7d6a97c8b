#!/usr/bin/env python3
"""Sums up a meson test log. A program that prints its cases counts by these, and another test counts as one.

The last line is "N passed, N failed". Skipped tests are named above it with their reason.
"""
import json
import re
import sys

CASES = re.compile(r"\[(?:doctest|cases)\](?: test cases:\s*\d+ \|)?\s*(\d+) passed,?(?: \|)?\s*(\d+) failed")


def main(path):
    passed = failed = 0
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        cases = CASES.search(test.get("stdout", ""))
        if test["result"] == "SKIP":
            print(f"skipped: {test['name']}: {test.get('stdout', '').strip().splitlines()[-1:]}")
        elif cases:
            passed += int(cases.group(1))
            failed += int(cases.group(2)) or int(test["result"] != "OK")
        else:
            passed += test["result"] == "OK"
            failed += test["result"] != "OK"
        for skipped in re.findall(r"MESSAGE: (skipped: .*)", test.get("stdout", "")):
            print(skipped)
        for reason in re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", test.get("stderr", ""), re.MULTILINE):  # unittest
            print(f"skipped: in {test['name']}: {reason}")
    print(f"{passed} passed, {failed} failed")


main(sys.argv[1])

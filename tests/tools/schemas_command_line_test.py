#!/usr/bin/env python3
"""Holds the JSON Schemas in docs/schemas against the tool: what it prints and writes is valid, and what a schema refuses
the tool refuses too.

usage: schemas_command_line_test.py PLUMB
"""
import copy
import json
import pathlib
import unittest

from command_line import CommandLineTest, plumb, run_cases

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"


def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    resolver = jsonschema.RefResolver(f"{SCHEMAS.as_uri()}/", schema)
    return jsonschema.Draft202012Validator(schema, resolver=resolver)


def mutations(document, path=()):
    """Yields a document with one thing changed, for each key of each object: lacking, of another type, or unknown."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        if isinstance(value, (dict, list)):
            yield from ((where, {**document, key: changed} if isinstance(document, dict) else document[:key] + [changed] + document[key + 1:])
                        for where, changed in mutations(value, (*path, key)))
        if isinstance(document, dict):
            yield (*path, key, "lacking"), {other: each for other, each in document.items() if other != key}
            yield (*path, key, "a list of lists"), {**document, key: [[1]]}
            yield (*path, key, "negative"), {**document, key: -1}
    if isinstance(document, dict):
        yield (*path, "unknown"), {**document, "colour_of_the_case": "grey"}


@unittest.skipIf(jsonschema is None, "there is no python3-jsonschema")
class Schemas(CommandLineTest):
    def samples(self):
        """Yields kind, file, and the command that reads the file."""
        for kind, verb, names in (("model", "models", ("deepseek-v3", "mamba2-2.7b")),
                                  ("layer_graph", "models", ("vgg-11",)), ("cluster", "clusters", ("h100",)),
                                  ("stack", "stacks", ("nemo-moe",))):
            for name in names:
                yield kind, json.loads(self.done(verb, name)), [verb]
        order = self.folder / "order.json"
        self.done("schedule", "convert", "dualpipe", "-p", 4, "-m", 8, "-o", order)
        yield "schedule", json.loads(order.read_text()), ["schedule", "check"]
        certificate = self.folder / "certificate.json"
        self.done("schedule", "search", "-p", 2, "-m", 4, "--certificate", certificate, "-o", order)
        yield "certificate", json.loads(certificate.read_text()), ["schedule", "check", order, "--certificate"]
        part = {"forward_s": 1, "input_grad_s": 1, "weight_grad_s": 1}
        costs = {"plumb_format": 1, "embedding": part, "head": part, "links": [{"latency_s": 0.1, "bandwidth_gb_per_s": 1}],
                 "parts": [dict(part, activation_bytes=4, released_at_input_grad_bytes=1, message_bytes=2)] * 2,
                 "max_activation_bytes": [8]}
        yield "costs", costs, ["simulate", "--schedule", "zb-h1", "-p", 2, "-m", 4, "--costs"]
        yield "plan", json.loads(self.llama_plan().read_text()), ["simulate"]

    def test_what_the_tool_writes_is_valid(self):
        for kind, document, _ in self.samples():
            with self.subTest(kind=kind, name=document.get("name")):
                validator(kind).validate(document)

    def test_what_a_schema_refuses_the_tool_refuses(self):
        refused = {}
        for kind, document, verb in self.samples():
            known = validator(kind)
            for where, changed in mutations(copy.deepcopy(document)):
                if kind == "plan" and where[0] in ("model", "cluster", "prediction"):
                    continue  # these are checked by themselves
                if not known.is_valid(changed):
                    refused[kind] = refused.get(kind, 0) + 1
                    result = plumb(*verb, self.write("changed.json", json.dumps(changed)))
                    self.assertNotEqual(result.returncode, 0, f"{kind} {document.get('name')}: {where}")
                    self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        print("  ".join(f"{kind}: {count} refused by both" for kind, count in refused.items()))
        self.assertGreater(min(refused.values()), 10)


if __name__ == "__main__":
    run_cases()

#!/usr/bin/env python3
"""Checks `plumb partition` on the command line: ONNX models, plans that it writes, methods beside each other, and stages
on meshes of their own.

usage: partition_command_line_test.py PLUMB
"""
import json
import shutil
import subprocess

from command_line import PLUMB, CommandLineTest, plumb, run_cases


def varint(number):
    out = b""
    while True:
        out += bytes([number & 127 | (128 if number > 127 else 0)])
        number >>= 7
        if number == 0:
            return out


def field(number, value):
    """Returns a protobuf field: a whole number, or bytes, text and messages with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def weight(name, *shape, extra=b""):
    return field(5, b"".join(field(1, size) for size in shape) + field(2, 1) + field(8, name) + extra)


def node(op, output, inputs, **lists):
    attributes = b"".join(field(5, field(1, key) + b"".join(field(8, number) for number in numbers)) for key, numbers in lists.items())
    return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op) + attributes)


def tensor(number, name, *shape):
    sizes = b"".join(field(1, field(2, size) if isinstance(size, str) else field(1, size)) for size in shape)
    return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes))))


def onnx(*parts):
    return field(1, 8) + field(7, b"".join(parts))


def chain():
    """A convolutional network whose layers Plumb's executor runs."""
    return onnx(tensor(11, "image", "batch", 3, 16, 16), weight("w1", 8, 3, 3, 3), weight("b1", 8), weight("w2", 512, 10), weight("b2", 10),
                node("Conv", "conv", ["image", "w1", "b1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                node("Relu", "relu", ["conv"]), node("MaxPool", "pool", ["relu"], kernel_shape=[2, 2], strides=[2, 2]),
                node("Flatten", "flat", ["pool"]), node("Gemm", "head", ["flat", "w2", "b2"]), tensor(12, "head", "batch", 10))


class Partitions(CommandLineTest):
    def onnx_file(self, content, name="model.onnx"):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def cpu(self, memory_gib=4):
        return self.write("cpu.json", json.dumps({
            "name": "cpu", "devices": 2,
            "device": {"name": "core", "peak_tflops": {"fp32": 0.05}, "memory_gib": memory_gib, "reserved_gib": 0,
                       "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5, "attention_efficiency": 0.5,
                       "memory_efficiency": 0.5, "kernel_fixed_us": 1, "compute_units": 1, "gemm_tile": 1},
            "node": {"devices": 2, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}}))

    def test_an_onnx_chain_is_cut_and_its_plan_is_simulated_and_runs(self):
        model, plan = self.onnx_file(chain()), self.folder / "plan.json"
        answer = self.json("partition", model, self.cpu(), "--global-batch", 8, "--layout", "mbs=2", "-o", plan)
        self.assertEqual([stage["first"] for stage in answer["stages"]][0], "image")
        again = self.json("simulate", plan)
        self.assertAlmostEqual(again["step_time_s"], answer["prediction"]["step_time_s"], places=12)
        losses = self.json("run", plan, "--steps", 1, "--baseline")
        self.assertAlmostEqual(losses["losses"][0], losses["baseline_losses"][0], places=4)

    def test_a_plan_and_a_planned_layout_take_an_onnx_model(self):
        model = self.onnx_file(chain())
        self.assertIn("samples/s", self.done("plan", model, "h100:8", "--global-batch", 64))

    def test_the_methods_of_deepspeed_stand_beside_ours(self):
        answer = self.json("partition", "vgg-16", "h100:4", "--method", "type:^convolution$")
        methods = {row["method"]: row for row in answer["methods"]}
        self.assertEqual(set(methods), {"time", "parameters", "uniform", "type:^convolution$"})
        self.assertEqual(methods["type:^convolution$"]["split"], answer["split"])
        self.assertEqual(methods["type:^convolution$"]["step_time_s"], answer["prediction"]["step_time_s"])
        self.assertLess(methods["time"]["step_time_s"], methods["parameters"]["step_time_s"])
        steps = [row["step_time_s"] for row in answer["methods"]]
        self.assertEqual(steps, sorted(steps))

    def test_a_bad_onnx_file_is_refused_by_a_sentence(self):
        asked = ("h100:4", "--global-batch", 64)
        whole = chain()
        self.refused(1, "partition", self.onnx_file(whole[: len(whole) - 3]), "h100:4", says=["model.onnx", "its end is missing"])
        cycle = onnx(tensor(11, "x", "batch", 4), node("Add", "a", ["x", "b"]), node("Relu", "b", ["a"]), tensor(12, "b", "batch", 4))
        self.refused(1, "plan", self.onnx_file(cycle), *asked, says=["form a cycle"])
        named = onnx(tensor(11, "x", "batch", "seq", 8), weight("w", 8, 4), node("MatMul", "y", ["x", "w"]), tensor(12, "y", "batch", "seq", 4))
        model = self.onnx_file(named)
        self.refused(1, "plan", model, *asked, says=["size 1 of input x", "model.onnx:seq=128"])
        self.assertIn("samples/s", self.done("plan", f"{model}:seq=32", *asked))
        self.refused(2, "plan", f"{model}:seq=no", *asked, says=["whole number above 0"])
        self.refused(2, "plan", f"{model}:seq", *asked, says=["KEY=VALUE"])
        many = onnx(tensor(11, "x", "batch", 4), *[node("Relu", f"r{i}", [f"r{i - 1}" if i else "x"]) for i in range(20000)],
                    tensor(12, "r19999", "batch", 4))
        self.refused(1, "plan", self.onnx_file(many), *asked, says=["16384"])

    def test_weights_that_lie_in_a_missing_file_are_noted(self):
        external = field(13, field(1, "location") + field(2, "weights.bin")) + field(14, 1)
        model = self.onnx_file(onnx(tensor(11, "x", "batch", 8), weight("w", 8, 4, extra=external), node("MatMul", "y", ["x", "w"]),
                                    tensor(12, "y", "batch", 4)))
        said = plumb("plan", model, "h100:4", "--global-batch", 64)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("weights.bin, which is missing", said.stderr)

    def test_stages_on_meshes_name_their_shardings(self):
        asked = ("partition", "resnet-50", "h100:4", "--meshes", "--layout", "mbs=16", "--global-batch", 256)
        answer = self.json(*asked)
        self.assertEqual(answer["microbatches"], 16)
        self.assertEqual(sum(stage["nodes"] for stage in answer["stages"]), 177)
        self.assertEqual(sum(len(stage["shardings"]) for stage in answer["stages"]), 177)
        self.assertLessEqual(sum(stage["devices"] for stage in answer["stages"]), 4)
        self.assertTrue(all(stage["exact"] for stage in answer["stages"]))
        self.assertGreaterEqual(answer["objective_s"], answer["slowest_stage_s"] * 16)
        self.assertIn("no sharding is cheaper, by elimination", plumb(*asked).stderr)
        both = self.json("partition", "resnet-50", "h100:4+a100:4@50", *asked[3:])
        self.assertEqual([row["site"] for row in both["one_site_alone"]], ["h100:4", "a100:4"])
        self.assertLessEqual(both["objective_s"], answer["objective_s"])
        self.assertLessEqual(self.json(*asked, "--groups", 16)["objective_s"], answer["objective_s"] * 1.05)
        self.refused(2, *asked, "--method", "uniform", says=["leave --method"])
        self.refused(2, "partition", "resnet-50", "h100:4", "--groups", 16, says=["give --meshes"])
        self.refused(3, "partition", "vgg-16", self.cpu(1e-6), "--meshes", says=["no stages fit", "smaller micro-batch"])

    def test_stages_on_meshes_are_a_plan_that_is_simulated_and_runs(self):
        plan = self.folder / "plan.json"
        answer = self.json("partition", "gpt2", "h100:4", "--meshes", "--layout", "mbs=4", "--global-batch", 64, "-o", plan)
        self.assertEqual(sum(stage["dp"] * stage["tp"] for stage in answer["stages"]), 4)
        self.assertEqual(sum(answer["split"]), 12)
        told = self.json("simulate", plan)["step_time_s"]
        self.assertEqual(told, answer["prediction"]["step_time_s"])
        # The objective has no messages, and the end of the step spread over its micro-batches.
        self.assertLess(abs(told / answer["objective_s"] - 1), 0.2)
        self.assertIsNone(answer["objective_of_any_sharding_s"])
        graph = self.json("partition", "alexnet", self.cpu(), "--meshes", "--layout", "mbs=4", "--global-batch", 16, "-o", plan)
        self.assertTrue(all(stage["tp"] == 1 for stage in graph["stages"]))
        self.assertGreater(graph["objective_of_any_sharding_s"], 0)
        self.assertEqual(self.json("simulate", plan)["step_time_s"], graph["prediction"]["step_time_s"])
        self.refused(1, "partition", "gpt2", "h100:4", "--meshes", "--layout", "tp=2,mbs=4", says=["chooses the degrees", "leave dp"])
        self.refused(1, "partition", "mixtral-nano", "h100:4", "--meshes", says=["mixtures of experts"])
        self.refused(3, "partition", "llama-3-70b", "h100:4", "--meshes", says=["no stages on all devices fit", "zero=1"])
        self.assertIn("by Alpa's objective", self.done("partition", "gpt2", "h100:4", "--meshes", "--layout", "mbs=4"))

    def test_a_graph_that_tables_cannot_solve_has_a_bound_or_a_solver_s_proof(self):
        nodes = [{"name": "x", "op": "input", "shape": [64, 256]}, {"name": "n0", "op": "linear", "out": 256}]
        for i in range(1, 20):  # each sum reads all the sums before it
            nodes.append({"name": f"l{i}", "op": "linear", "out": 256, "inputs": [f"n{i - 1}"]})
            nodes.append({"name": f"n{i}", "op": "add", "inputs": [f"l{i}", *(f"n{j}" for j in range(i))]})
        dense = self.write("dense.json", json.dumps({"name": "dense", "nodes": nodes}))
        asked = [PLUMB, "partition", str(dense), "h100:4", "--meshes", "--layout", "mbs=4", "--groups", "1"]
        alone = subprocess.run(asked, capture_output=True, text=True, timeout=300, env={"PATH": str(self.folder)})
        self.assertRegex(alone.stderr, "stage 0: another sharding may be [0-9.]+ % cheaper at most; with the package coinor-cbc")
        if not any(shutil.which(solver) for solver in ("cbc", "highs", "glpsol")):
            self.skipTest("no solver of integer programs is installed")
        said = subprocess.run(asked, capture_output=True, text=True, timeout=300).stderr
        self.assertRegex(said, "no sharding is cheaper, by (cbc|highs|glpsol)|as far as (cbc|highs|glpsol) has proved in 60 s")

    def test_an_unequal_split_of_a_network_trains(self):
        plan = self.folder / "plan.json"
        model = self.onnx_file(chain())
        self.json("partition", model, self.cpu(), "--global-batch", 8, "--layout", "mbs=2", "-o", plan)
        document = json.loads(plan.read_text())
        document["cluster"]["devices"] = document["cluster"]["node"]["devices"] = 3
        document["layout"]["meshes"] = "dp2:dp1"
        uneven = self.write("uneven.json", json.dumps(document))
        one, other = self.json("run", plan, "--steps", 2)["losses"], self.json("run", uneven, "--steps", 2)["losses"]
        self.assertAlmostEqual(one[-1], other[-1], places=4)


if __name__ == "__main__":
    run_cases()

#!/usr/bin/env python3
"""Checks layer graphs on the command line: presets, plans, stages, and the plan that runs.

usage: layer_graph_command_line_test.py PLUMB
"""
import json

from command_line import CommandLineTest, run_cases


class LayerGraphs(CommandLineTest):
    def test_presets_have_their_published_parameters(self):
        for name, parameters in (("resnet-50", 25_557_032), ("bert-base", 110_106_428), ("gnmt-8", 160_671_297)):
            shown = json.loads(self.done("models", name))
            self.assertEqual(shown["parameters"], parameters)
            self.assertEqual(sum(layer["parameters"] for layer in shown["layers"]), parameters)
        listed = self.done("models")
        for name in ("alexnet", "vgg-19", "wide-resnet-50-2", "t5-11b", "gnmt-16"):
            self.assertIn(name, listed)

    def test_a_network_of_images_is_planned_in_samples_a_second(self):
        plan = self.folder / "plan.json"
        text = self.done("plan", "resnet-50", "h100:8", "--global-batch", 1024, "--layout", "mbs=64", "-o", plan)
        self.assertIn("samples/s", text)
        kept = json.loads(plan.read_text())
        self.assertIsNone(kept["prediction"]["tokens_per_s"])
        self.assertAlmostEqual(kept["prediction"]["samples_per_s"] * kept["prediction"]["step_time_s"], 1024, places=6)
        again = self.json("simulate", plan)
        self.assertAlmostEqual(again["step_time_s"], kept["prediction"]["step_time_s"], places=12)
        self.assertIsNone(again["tokens_per_s"])
        self.assertIn("activations", self.done("memory", plan))
        rows = self.json("whatif", plan, "--vary", "device.memory_bandwidth_gb_per_s=1000,4000")["rows"]
        self.assertGreater(rows[0]["prediction"]["step_time_s"], rows[1]["prediction"]["step_time_s"])

    def test_sequences_have_tokens_and_their_length_is_asked_for(self):
        short = self.json("simulate", "bert-base", "h100:8", "--global-batch", 256, "--seq", 128, "--layout", "dp=8,mbs=32")
        long = self.json("simulate", "bert-base", "h100:8", "--global-batch", 256, "--layout", "dp=8,mbs=32")
        self.assertGreater(long["step_time_s"], 2.5 * short["step_time_s"])  # 4 times the tokens, as many launches
        self.assertAlmostEqual(short["tokens_per_s"], 128 * short["samples_per_s"], places=3)

    def test_stages_name_their_nodes_and_what_crosses(self):
        answer = self.json("partition", "resnet-50", "h100:4", "--layout", "mbs=16")
        stages = answer["stages"]
        self.assertEqual(len(stages), 4)
        self.assertEqual(stages[0]["first"], "image")
        self.assertEqual(stages[-1]["last"], "loss")
        self.assertEqual(stages[-1]["sends_bytes"], 0)
        self.assertTrue(all(stage["sends_bytes"] > 0 for stage in stages[:-1]))
        times = [stage["forward_s"] + stage["backward_s"] for stage in stages]
        self.assertLess(max(times), 1.15 * sum(times) / 4)
        even = self.json("partition", "vgg-16", "h100:4", "--method", "uniform")["split"]
        self.assertLessEqual(max(even) - min(even), 3)
        by_weights = self.json("partition", "vgg-16", "h100:2", "--method", "parameters")["stages"]
        self.assertEqual(by_weights[0]["last"], "fc6")  # it has 74 % of them: 117 M before fc7, 21 M from it on
        typed = self.json("partition", "vgg-16", "h100:2", "--method", "type:^convolution$")["split"]
        ops = [layer["op"] for layer in json.loads(self.done("models", "vgg-16"))["layers"]]
        self.assertEqual(sum(typed), len(ops))
        self.assertIn(ops[:typed[0]].count("convolution"), (6, 7))  # of 13 in all

    def test_a_measured_profile_is_cut_by_its_times(self):
        node = "node{} -- L -- forward_compute_time={}, backward_compute_time=2, activation_size=8, parameter_size=4\n"
        profile = self.write("graph.txt", "".join(node.format(i, i) for i in (1, 2, 3)) + "\tnode1 -- node2\n\tnode2 -- node3\n")
        answer = self.json("partition", profile, "v100:2", "--straight", "--as-pipedream")
        self.assertEqual([stage["nodes"] for stage in answer["stages"]], [2, 1])
        self.assertAlmostEqual(answer["time_of_a_minibatch_s"], 7e-3)
        in_levels = self.json("partition", profile, "--levels", "2:1e9", "--as-pipedream", "--straight")
        self.assertEqual(in_levels["stages"], answer["stages"])
        own = self.json("partition", profile, "--levels", "3:1e9")
        self.assertTrue(own["exact"])
        self.assertLess(own["time_of_a_minibatch_s"], answer["time_of_a_minibatch_s"])
        self.refused(3, "partition", profile, "--levels", "3:1e9", "--memory", 1, says=["use more of them, or larger ones"])
        self.refused(2, "partition", profile, says=["name a cluster", "--levels"])
        self.refused(2, "partition", profile, "--levels", "3", says=["COUNT:BYTES_PER_SECOND"])
        self.refused(2, "partition", profile, "v100:2", "--use-memory-constraint", says=["--as-pipedream"])
        self.refused(2, "partition", "vgg-16", "h100:2", "--levels", "2:1e9", says=["leave them away"])
        cut = self.write("cut.txt", profile.read_text()[:60])
        self.refused(1, "partition", cut, "v100:2", says=["cut.txt:1"])

    def test_a_plan_of_a_chain_runs_on_the_cpu(self):
        cluster = self.write("cpu.json", json.dumps({
            "name": "cpu", "devices": 2,
            "device": {"name": "core", "peak_tflops": {"fp32": 0.05}, "memory_gib": 4, "reserved_gib": 0,
                       "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5, "attention_efficiency": 0.5,
                       "memory_efficiency": 0.5, "kernel_fixed_us": 1, "compute_units": 1, "gemm_tile": 1},
            "node": {"devices": 2, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}}))
        plan = self.folder / "plan.json"
        self.done("plan", "alexnet-32", cluster, "--global-batch", 16, "--layout", "pp=2,mbs=4", "-o", plan)
        losses = self.json("run", plan, "--steps", 2, "--baseline")
        self.assertEqual(len(losses["losses"]), 2)
        for piped, alone in zip(losses["losses"], losses["baseline_losses"]):
            self.assertAlmostEqual(piped, alone, delta=1e-4 * abs(alone))
        self.done("plan", "resnet-50", cluster, "--global-batch", 4, "--layout", "pp=2,mbs=1", "-o", plan)
        self.refused(1, "run", plan, says=["convolution", "alexnet, vgg-16 or mlp"])

    def test_what_a_graph_has_not_is_refused_by_a_sentence(self):
        asked = ("simulate", "vgg-16", "h100:4", "--global-batch", 64, "--layout")
        self.refused(3, *asked, "tp=2,dp=2", says=["tp=2", "give tp=1"])
        self.refused(3, *asked, "dp=4,recompute=selective", says=["give full or none"])
        self.refused(1, "simulate", "vgg-16", "h100:4", "--global-batch", 64, "--seq", 128, says=["--seq"])
        graph = json.loads(self.done("models", "alexnet"))
        for extra in ("parameters", "forward_gflops", "layers"):
            graph.pop(extra)
        graph["nodes"][1]["op"] = "convolutoin"
        mine = self.write("mine.json", json.dumps(graph))
        self.refused(1, "plan", mine, "h100:4", "--global-batch", 64, says=["mine.json", "conv1", 'did you mean "convolution"'])
        self.refused(2, "partition", "vgg-16", "h100:2", "--method", "evenly", says=["type:REGEX"])
        self.refused(2, "partition", "vgg-16", "h100:2", "--method", "type:[", says=["regular expression"])


if __name__ == "__main__":
    run_cases()

#!/usr/bin/env python3
"""The command line as a user meets it: exit codes, what stands on stdout and stderr, and files that stay untouched.

usage: command_line_test.py PLUMB
"""
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time
import unittest

PLUMB = str(pathlib.Path(sys.argv[1]).resolve())


def plumb(*arguments, cwd=None):
    return subprocess.run([PLUMB, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300)


# AddressSanitizer reserves terabytes of addresses, which a limit on them would forbid.
SANITIZED = b"__asan_init" in pathlib.Path(PLUMB).read_bytes()


def bound_memory():
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix="plumb-cli-")
        self.folder = pathlib.Path(self.holder.name)
        self.addCleanup(self.holder.cleanup)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def done(self, *arguments):
        result = plumb(*arguments)
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stderr}")
        return result.stdout

    def json(self, *arguments):
        """stdout is one JSON document and nothing else."""
        return json.loads(self.done(*arguments, "--json"))

    def refused(self, code, *arguments, says=()):
        """The exit code, nothing but one sentence on stderr, and that sentence holds each of `says`."""
        result = plumb(*arguments)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stdout}{result.stderr}")
        self.assertTrue(result.stderr.startswith("plumb: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in says:
            self.assertIn(str(part), result.stderr)
        return result

    def llama_plan(self):
        path = self.folder / "plan.json"
        if not path.exists():
            self.done("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "-o", path)
        return path


class Presets(CommandLineTest):
    def test_every_listed_model_and_cluster_can_be_shown_and_read_back(self):
        for verb in ("models", "clusters"):
            for preset in self.json(verb)[verb]:
                shown = self.done(verb, preset["name"])
                if verb == "clusters":
                    path = self.write("again.json", shown)
                    self.assertEqual(self.done(verb, path), shown)

    def test_a_model_is_planned_on_every_cluster_preset(self):
        for cluster in self.json("clusters")["clusters"]:
            with self.subTest(cluster["name"]):
                answer = self.json("simulate", "gpt2", cluster["name"], "--global-batch", "144", "--layout", "tp=1,pp=1,mbs=1,v=1,zero=1")
                self.assertGreater(answer["step_time_s"], 0)
                self.assertTrue(0 < answer["mfu"] < 1)

    def test_a_device_without_bf16_trains_in_fp16(self):
        self.done("plan", "gpt2", "v100", "--global-batch", "8", "-o", self.folder / "plan.json")
        self.assertEqual(json.loads((self.folder / "plan.json").read_text())["training"]["precision"], "fp16")

    def test_llama_3_8b_has_8_03e9_parameters(self):
        self.assertEqual(json.loads(self.done("models", "llama-3-8b"))["parameters"], 8_030_261_248)

    def test_a_hugging_face_config_is_taken_as_it_is(self):
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
                  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
                  "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "max_position_embeddings": 8192,
                  "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 128000}
        result = plumb("models", self.write("config.json", json.dumps(config)))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["parameters"], 8_030_261_248)
        self.assertIn("bos_token_id", result.stderr)  # ignored keys are listed once
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_a_preset_that_does_not_exist_names_the_nearest(self):
        self.refused(1, "models", "llama-3-8", says=["llama-3-8b"])
        self.refused(1, "clusters", "h10", says=["h100"])


class Planning(CommandLineTest):
    def test_the_optimizers_state_moves_to_the_host(self):
        asked = ["simulate", "llama-2-7b", "h100:8", "--global-batch", 8, "--seq", 2048, "--layout"]
        here = self.json(*asked, "dp=1,tp=8,pp=1,mbs=1,zero=0")
        away = self.json(*asked, "dp=1,tp=8,pp=1,mbs=1,zero=0,offload=optimizer")
        self.assertLess(away["peak_memory_bytes"][0], here["peak_memory_bytes"][0])
        self.assertGreater(away["step_time_s"], here["step_time_s"])
        self.refused(1, *asked, "offload=nvme", says=["optimizer+activations"])
        self.refused(1, "simulate", "gpt2", "b200:8", "--global-batch", 8, "--layout", "dp=8,tp=1,pp=1,offload=optimizer", says=["host"])

    def test_a_plan_names_time_mfu_bubble_and_memory_by_rank(self):
        best = self.json("plan", "llama-3-8b", "h100:16", "--global-batch", 128)["best"]
        prediction = best["prediction"]
        self.assertGreater(prediction["step_time_s"], 0)
        self.assertTrue(0.1 < prediction["mfu"] < 0.8, prediction["mfu"])
        self.assertTrue(0 <= prediction["bubble_ratio"] < 1)
        self.assertEqual(len(prediction["peak_memory_bytes"]), best["layout"]["pp"])

    def test_a_layouts_schedule_may_be_a_file(self):
        mine = self.folder / "mine.csv"
        self.done("schedule", "make", "1f1b", "-p", 2, "-m", 8, "-o", mine)
        question = ["gpt2-medium", "h100:4", "--global-batch", 16, "--layout"]
        layout = "dp=2,tp=1,pp=2,mbs=1,v=1,recompute=none,zero=1"
        by_name = self.json("simulate", *question, layout + ",schedule=1f1b")
        by_file = self.json("simulate", *question, f"schedule={mine}," + layout)
        self.assertEqual(by_file["makespan_s"], by_name["makespan_s"])
        plan = self.folder / "with-file.json"
        self.done("plan", *question, f"schedule={mine}", "-o", plan)
        self.assertEqual(json.loads(plan.read_text())["layout"]["pp"], 2)
        self.json("simulate", plan)
        self.refused(1, "plan", *question, f"pp=4,schedule={mine}", says=["2 ranks"])
        self.refused(3, "plan", *question[:3], 12, "--layout", f"schedule={mine}", says=["8 micro-batches"])

    def test_simulating_a_plan_gives_what_the_plan_promised(self):
        plan = json.loads(self.llama_plan().read_text())
        trace = self.folder / "trace.json"
        simulated = self.json("simulate", self.llama_plan(), "--trace", trace)
        for key in ("step_time_s", "bubble_ratio", "span_bubble_ratio", "mfu", "peak_memory_bytes", "peak_activations"):
            self.assertEqual(simulated[key], plan["prediction"][key], key)
        self.assertTrue(simulated["critical_path"])
        self.assertEqual(len(simulated["ranks"]), plan["layout"]["pp"])
        self.assertAlmostEqual(self.json("trace", "info", trace)["makespan_s"], simulated["makespan_s"], places=12)

    def test_a_long_run_is_told_from_its_steady_state(self):
        arguments = ("simulate", "--schedule", "1f1b", "-p", 16, "-m", 32768, "--costs", "f=1,i=1,w=1,c=0")
        simulated = self.json(*arguments)
        self.assertEqual(simulated["engine"], "steady state")
        self.assertIsNone(simulated["critical_path"])
        self.assertEqual(simulated["makespan_s"], 3 * (32768 + 15))  # (m+p-1)(F+B)
        self.assertEqual(simulated["peak_activations"], list(range(16, 0, -1)))

    def test_memory_by_rank_sums_to_the_peak(self):
        for rank in self.json("memory", self.llama_plan())["ranks"]:
            parts = sum(rank[key] for key in ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "transient_bytes_at_peak"))
            self.assertEqual(parts, rank["peak_bytes"])
            self.assertEqual(sum(rank["bytes_by_kind"].values()), rank["peak_bytes"])
            self.assertEqual(sum(holder["bytes"] for holder in rank["holders"]), rank["peak_bytes"])
            at_peak = [[pair for pair in series if pair[0] <= rank["peak_at_s"]][-1:]
                       for series in rank["bytes_over_time_by_kind"].values()]
            self.assertEqual(sum(pair[0][1] for pair in at_peak if pair), rank["peak_bytes"])
        simulated = self.json("simulate", self.llama_plan())
        for rank in simulated["ranks"]:
            self.assertEqual(rank["memory_at_peak"]["peak_bytes"], rank["peak_memory_bytes"])
        self.assertIn("activations", self.done("memory", self.llama_plan()))

    def test_memory_plans_an_arena_for_each_rank(self):
        answer = self.json("memory", self.llama_plan(), "--arena")
        for rank, arena in zip(answer["ranks"], answer["arena"]["ranks"]):
            self.assertGreaterEqual(arena["arena_bytes"], arena["live_bytes"])
            self.assertLess(arena["arena_bytes"], 1.3 * rank["transient_bytes_at_peak"])
        self.assertGreater(answer["arena"]["events"], 0)
        self.assertIn("live at once", self.done("memory", self.llama_plan(), "--arena"))
        self.assertIsNone(self.json("memory", self.llama_plan())["arena"])

    def test_what_if_answers_each_question_of_the_grid(self):
        csv = self.folder / "grid.csv"
        rows = self.json("whatif", self.llama_plan(), "--vary", "cluster.network.bandwidth_gb_per_s=25,50,100",
                         "--vary", "training.global_batch=128,256", "--csv", csv)["rows"]
        self.assertEqual(len(rows), 6)
        times = [row["prediction"]["step_time_s"] for row in rows[::2]]
        self.assertEqual(times, sorted(times, reverse=True))  # a faster network is never slower
        self.assertEqual(len(csv.read_text().splitlines()), 7)

    def test_what_cannot_exist_exits_3_with_the_nearest_change(self):
        question = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "--layout")
        self.refused(3, *question, "tp=16,pp=1,dp=1", says=["tp"])  # 8 kv heads
        self.refused(3, "plan", "gpt2", "h100:16", "--global-batch", 128, "--layout", "pp=16,tp=1", says=["pp"])  # 12 layers
        self.refused(3, "plan", "llama-3.1-405b", "h100:8", "--global-batch", 8, says=["GiB"])


class Schedules(CommandLineTest):
    def test_closed_forms_in_the_users_unit(self):
        answer = self.json("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", "f=1,i=1,w=1,unit=ms")
        self.assertEqual(answer["makespan_s"], 0.033)  # (m+p-1)(F+B) = 11 * 3 ms
        self.assertAlmostEqual(answer["bubble_ratio"], 3 / 11, places=12)
        self.assertIsNone(answer["tokens_per_s"])
        self.assertIsNone(answer["mfu"])
        self.assertIsNone(answer["peak_memory_bytes"])
        self.assertEqual(answer["peak_activations"], [4, 3, 2, 1])

    def test_idle_time_is_put_down_to_causes_in_predictions_and_traces(self):
        trace = self.folder / "trace.json"
        answer = self.json("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", "f=1,b=2,c=0.1", "--trace", trace)
        for rank in answer["ranks"]:
            self.assertAlmostEqual(sum(rank["idle_by_cause"].values()), rank["idle_s"], places=9)
        self.assertGreater(answer["ranks"][3]["idle_by_cause"]["warm_up_s"], 0)
        sensitivity = answer["sensitivity"]
        self.assertAlmostEqual(sum(sensitivity["compute_by_stage_s"]), 33, places=9)
        self.assertAlmostEqual(sensitivity["latency_s"], answer["makespan_s"] - 33, places=9)
        self.assertIn("why ranks idle", self.done("trace", "info", trace))
        self.assertIsNone(self.json("trace", "info", trace)["ranks"][0]["peak_memory_bytes"])  # costs without bytes
        self.assertEqual(self.json("trace", "info", trace)["ranks"][3]["idle_by_cause"],
                         answer["ranks"][3]["idle_by_cause"])

    def test_noise_gives_percentiles_and_the_slowdown_of_synchrony(self):
        question = ("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", "f=1,b=2")
        quiet = self.json(*question)
        self.assertIsNone(quiet["noise"])
        noise = self.json(*question, "--noise", "cv=0.1,rank_cv=0.02,runs=300,seed=3")["noise"]
        self.assertEqual(noise["step_time_without_noise_s"], quiet["step_time_s"])
        self.assertGreater(noise["slowdown_ratio"], 1)
        self.assertLess(noise["p50_step_time_s"], noise["p95_step_time_s"])
        self.assertLess(noise["p95_step_time_s"], noise["p99_step_time_s"])
        self.assertEqual(len(noise["ranks"]), 4)
        self.assertEqual(noise, self.json(*question, "--noise", "cv=0.1,rank_cv=0.02,runs=300,seed=3")["noise"])
        exact = self.json(*question, "--noise", "cv=0,runs=5")["noise"]
        self.assertEqual(exact["p99_step_time_s"], quiet["step_time_s"])
        self.refused(1, *question, "--noise", "cv=0.1,runs=0", says=["noise", "1 or more"])
        slow = self.json(*question, "--noise", "cv=0.1,runs=20", "--slow", "rank=1:0.5")
        self.assertEqual(slow["noise"]["step_time_without_noise_s"], slow["step_time_s"])
        self.assertGreater(slow["step_time_s"], quiet["step_time_s"])

    def test_moves_share_the_hosts_memory(self):
        question = ("simulate", "--schedule", "1f1b", "-p", 8, "-m", 16, "--offload", 2, "--costs")
        alone = self.json(*question, "f=1,b=2,x=1.5")
        self.assertEqual(alone["engine"], "compiled")
        self.assertEqual(self.json(*question, "f=1,b=2,x=1.5,host=16")["makespan_s"], alone["makespan_s"])
        wide = self.json(*question, "f=1,b=2,x=1.5,host=3")  # as soon as more ranks move than that
        self.assertEqual(wide["engine"], "events")
        self.assertGreaterEqual(wide["makespan_s"], alone["makespan_s"])
        shared = self.json(*question, "f=1,b=2,x=1.5,host=1")
        self.assertEqual(shared["engine"], "events")
        self.assertGreater(shared["makespan_s"], alone["makespan_s"])
        sensitivity = shared["sensitivity"]
        self.assertGreater(sensitivity["shared_links"]["host_memory"], 0)
        self.assertAlmostEqual(sum(sensitivity["compute_by_stage_s"]) + sensitivity["moves_s"] + sensitivity["capacity_s"],
                               shared["makespan_s"], places=6)
        self.refused(1, "simulate", "--schedule", "1f1b", "-p", 4, "-m", 4, "--costs", "host=2", says=["host=", "x="])
        self.refused(1, *question, "host=0", says=["host=", "above 0"])

    def test_a_plans_replicas_wait_for_the_slowest(self):
        plan = self.llama_plan()
        answer = self.json("simulate", plan, "--links", "private", "--noise", "cv=0.05,runs=50")
        self.assertEqual(answer["noise"]["step_time_without_noise_s"], answer["step_time_s"])
        self.assertGreater(answer["noise"]["slowdown_ratio"], 1)

    def test_a_plan_says_what_communication_costs_and_what_each_figure_of_the_cluster_is_worth(self):
        answer = self.json("simulate", "llama-3-8b", "h100:16", "--global-batch", 16, "--layout", "dp=2,tp=4,pp=2",
                           "--links", "private")
        for rank in answer["ranks"]:
            self.assertAlmostEqual(sum(rank["time"].values()), answer["makespan_s"], places=9)
            self.assertAlmostEqual(rank["time"]["waiting_s"] + sum(rank["time"][key] for key in (
                "messages_s", "gathers_s", "reductions_s", "moves_s")), rank["idle_s"], places=9)
            self.assertGreater(rank["time"]["tensor_s"], 0)
        self.assertAlmostEqual(sum(sum(rank["on_critical_path"].values()) for rank in answer["ranks"]),
                               answer["makespan_s"], places=9)
        sensitivity = answer["sensitivity"]
        worth = sensitivity["step_change_pct_per_pct_of"]
        self.assertLess(worth["device.peak_tflops"], worth["device.memory_bandwidth_gb_per_s"])
        self.assertLess(worth["device.memory_bandwidth_gb_per_s"], 0)
        self.assertLess(worth["network.bandwidth_gb_per_s"], 0)
        self.assertEqual({entry["group"] for entry in sensitivity["collectives"]}, {"tensor", "data"})
        self.assertTrue(sensitivity["links"])
        sharing = ("simulate", "llama-3-8b", "h100:32", "--global-batch", 64, "--layout",
                   "dp=4,tp=4,pp=2,zero=0,mbs=1,schedule=1f1b,v=1")
        for slow in ((), ("--slow", "rank=3:0.5")):
            shared = self.json(*sharing, "--noise", "cv=0.05,comm_cv=0.1,runs=10", *slow)
            self.assertEqual(shared["engine"], "events")
            self.assertEqual(shared["noise"]["step_time_without_noise_s"], shared["step_time_s"])
            sensitivity = shared["sensitivity"]  # all costs longer and all links narrower: the step longer
            parts = sum(sensitivity["compute_by_stage_s"]) + sum(sensitivity[key] for key in (
                "group_collectives_s", "bandwidth_s", "latency_s", "unshard_s", "reduction_s", "moves_s", "capacity_s"))
            self.assertAlmostEqual(parts, shared["makespan_s"], places=6)
            self.assertLess(sensitivity["step_change_pct_per_pct_of"]["device.peak_tflops"], 0)

    def test_names_in_any_case_and_files_work_alike(self):
        made = self.folder / "made.csv"
        self.done("schedule", "make", "Interleaved", "-p", 4, "-m", 8, "-v", 2, "-o", made)
        by_name = self.json("simulate", "--schedule", "INTERLEAVED", "-p", 4, "-m", 8, "-v", 2, "--costs", "c=0.25")
        by_file = self.json("simulate", "--schedule-file", made, "--costs", "c=0.25")
        self.assertEqual(by_name["makespan_s"], by_file["makespan_s"])
        as_text = self.folder / "made.txt"
        self.done("schedule", "convert", made, "-o", as_text)
        self.assertIn("valid", self.done("schedule", "check", as_text))

    def test_simulate_shares_links_and_says_so(self):
        layout = ("simulate", "gpt2-medium", "h100:32", "--global-batch", 64, "--layout",
                  "tp=8,pp=2,dp=2,mbs=1,zero=0,v=2,schedule=interleaved")
        shared = self.json(*layout)
        self.assertEqual(shared["engine"], "events")
        self.assertGreater(shared["makespan_s"], shared["makespan_unshared_s"])
        private = self.json(*layout, "--links", "private")
        self.assertEqual(private["engine"], "compiled")
        self.assertEqual(private["makespan_s"], shared["makespan_unshared_s"])
        unfolded = self.json(*layout, "--unfolded")
        self.assertEqual(unfolded["simulated_replicas"], 16)
        self.assertEqual(unfolded["makespan_s"], shared["makespan_s"])
        self.assertGreater(self.json(*layout, "--slow", "rank=17:0.8")["makespan_s"], shared["makespan_s"])
        self.assertGreater(self.json(*layout, "--degrade", "nic:node3=0.5")["makespan_s"], shared["makespan_s"])
        self.refused(1, *layout, "--slow", "rank=32:0.8", says=["rank 32", "0 to 31"])
        self.refused(1, *layout, "--degrade", "nic:node4=0.5", says=["node 4", "0 to 3"])

    def test_simulate_takes_a_topology_of_the_users_own(self):
        layout = ("simulate", "gpt2-medium", "h100:16", "--global-batch", 32, "--layout",
                  "tp=8,pp=2,dp=1,mbs=1,zero=0,schedule=1f1b", "--topology")
        gpus = [f"gpu{rank}" for rank in range(16)]
        document = {"nodes": gpus + ["switch"], "devices": gpus,
                    "links": [{"from": gpu, "to": "switch", "bandwidth_gb_per_s": 50, "latency_us": 1} for gpu in gpus]}

        def written(name):
            path = self.folder / name
            path.write_text(json.dumps(document))
            return path
        flat = self.json(*layout, written("flat.json"))
        document["links"][0]["bandwidth_gb_per_s"] = 0.05
        slow = self.json(*layout, written("slow.json"))
        self.assertGreater(slow["makespan_s"], flat["makespan_s"])
        document["links"][0]["bandwidth_gb_per_s"] = 0
        self.refused(1, *layout, written("zero.json"), says=["zero.json", "links[0].bandwidth_gb_per_s", "above 0"])
        del document["links"][0]
        self.refused(1, *layout, written("cut.json"), says=["gpu0", "gpu8", "connect them"])
        document["devices"] = gpus[:8]
        self.refused(1, *layout, written("few.json"), says=["16 ranks", "rank 8", "more devices"])
        document["devices"] = ["gpu99"]
        self.refused(1, *layout, written("strange.json"), says=["gpu99", "did you mean"])
        self.refused(1, "simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--topology", written("any.json"),
                     says=["--topology", "give a plan"])

    def test_late_receives_cost_time_where_sends_wait_for_them(self):
        schedule = ("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", "f=1,b=2,c=0.5")
        early = self.json(*schedule, "--sends", "rendezvous")
        late = self.json(*schedule, "--sends", "rendezvous", "--receives", "late")
        self.assertGreater(late["makespan_s"], early["makespan_s"])
        self.assertEqual(self.json(*schedule, "--receives", "late")["makespan_s"], self.json(*schedule)["makespan_s"])

    def test_offloading_and_sharding(self):
        order = self.done("schedule", "make", "1f1b", "-p", 4, "-m", 8, "--offload", 2)
        self.assertIn("0F2 0OFFLOAD2", order)
        plain = ("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", "f=1,b=2,x=1")
        kept = self.json(*plain)
        offloaded = self.json(*plain, "--offload", 1)
        self.assertEqual(kept["peak_activations"], [4, 3, 2, 1])
        self.assertLess(offloaded["peak_activations"][0], 4)
        self.assertEqual(offloaded["step_time_s"], kept["step_time_s"])  # a move beside each compute action is hidden
        slow = self.json("simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", "f=1,b=2,x=9", "--offload", 1)
        self.assertGreater(slow["step_time_s"], kept["step_time_s"])
        sharded = ("schedule", "make", "bfs", "-p", 2, "-m", 4, "-v", 2, "--lowered", "--shard", 1)
        self.assertEqual(self.done(*sharded).count("0UNSHARD"), 2)
        self.assertTrue(self.done(*sharded, "--prefetch").find("2UNSHARD") < self.done(*sharded).find("2UNSHARD"))
        self.refused(1, "schedule", "make", "1f1b", "-p", 2, "-m", 2, "--shard", 1, says=["--lowered"])
        self.refused(1, "schedule", "make", "bpipe", "-p", 8, "-m", 8, "--offload", 1, says=["0EVICT4"])
        self.refused(1, "schedule", "make", "1f1b", "-p", 2, "-m", 2, "--offload", -1, says=["give 0 or more"])
        self.refused(2, "schedule", "make", "1f1b", "-p", 2, "-m", 2, "--prefetch", says=["--shard"])

    def test_pytorchs_lowering_and_lenient_reading(self):
        lowered = self.folder / "lowered.csv"
        self.done("schedule", "make", "izb", "-p", 2, "-m", 4, "-v", 2, "--lowered", "--lowering", "pytorch", "-o", lowered)
        self.assertTrue(lowered.read_text().startswith("0UNSHARD,2UNSHARD,0F0,0SEND_F0"))
        self.assertIn("valid", self.done("schedule", "check", lowered))
        sloppy = self.write("sloppy.csv", "0F0xyz,0B0\n")
        self.refused(1, "simulate", "--schedule", sloppy, says=["row 1, column 1"])
        result = plumb("schedule", "convert", sloppy, "--lenient")
        self.assertEqual(result.returncode, 0)
        self.assertIn('"xyz" behind 0F0 left out', result.stderr)
        own = self.folder / "own.csv"
        self.refused(1, "schedule", "make", "1f1b", "-p", 2, "-m", 2, "--lowered", "-o", own, says=["OPTIMIZER_STEP"])
        self.assertFalse(own.exists())

    def test_list_and_show(self):
        names = [entry["name"] for entry in self.json("schedule", "list")["schedules"]]
        self.assertEqual(len(names), len(set(names)))
        for name in ("naive", "gpipe", "1f1b", "interleaved", "pipedream"):
            self.assertIn(name, names)
        for name in names:
            with self.subTest(name):
                self.assertIn("rank 0", self.done("schedule", "show", name, "-p", 4, "-m", 8))

    def test_broken_schedules_are_refused_with_rank_and_position(self):
        broken = {
            "missing.txt": ("0F0 0F1 0B0 0B1\n1F0 1B0 1F1\n", ["rank 1", "1B1 is missing"]),
            "doubled.txt": ("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1 1B1\n", ["rank 1, position 4", "already"]),
            "misplaced.txt": ("0F0 0F1 0B0 1B1 0B1\n1F0 1F1 1B0\n", ["rank 0, position 3", "rank 1"]),
            "unmatched.txt": ("0F0 0SEND_F0\n1F0\n", ["rank 0, position 1", "1RECV_F0"]),
            "deadlock.txt": ("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n", ["deadlocks", "0B0", "1F1"]),
            "garbage.csv": ("0F0,0B0\n1F0,1B0,and more\n", ["row 2, column 3", "and more"]),
        }
        for name, (text, says) in broken.items():
            with self.subTest(name):
                path = self.write(name, text)
                self.refused(1, "simulate", "--schedule-file", path, "--costs", "f=1", says=[path, *says])
                checked = plumb("schedule", "check", path)
                self.assertEqual(checked.returncode, 1)


    def test_a_faulty_schedule_is_shown_as_a_grid_with_the_fault_marked(self):
        path = self.write("bad.txt", "0F0 0F1 0B0 0B1\n1B0 1F0 1F1 1B1\n")
        shown = plumb("schedule", "show", path)
        self.assertEqual(shown.returncode, 1)
        self.assertIn(">1B0<", shown.stdout)
        picture = self.folder / "bad.svg"
        self.assertEqual(plumb("schedule", "show", path, "-o", picture).returncode, 1)
        self.assertIn("stands ahead of its forward", picture.read_text())
        self.done("schedule", "show", "zb-v", "-p", 4, "-m", 8, "--costs", "f=2,c=0.1", "-o", picture)
        self.assertIn("bubble", picture.read_text())
        self.refused(1, "schedule", "show", "1f1b", "-p", 2, "-m", 2, "-o", self.folder / "x.png", says=[".svg"])

    def test_a_search_states_its_gap_and_writes_a_schedule_that_any_verb_takes(self):
        made = self.folder / "made.csv"
        question = ["-p", 4, "-m", 8, "--costs", "f=1000,i=1500,w=800"]
        found = self.json("schedule", "search", "ZB-V", *question, "-o", made)
        self.assertEqual(found["span_bound_s"], 8 * 2 * 3300)  # the work of a rank
        self.assertLessEqual(found["span_s"], 56200)  # what the authors' scheduler reports for these costs
        self.assertAlmostEqual(found["gap_pct"], 100 * (found["span_s"] / found["span_bound_s"] - 1), places=9)
        self.assertLessEqual(found["peak_activations"], 8)
        self.done("schedule", "check", made, "--max-activations", 8)
        simulated = self.json("simulate", "--schedule", made, "--costs", question[-1])
        self.assertEqual(simulated["span_bubble_ratio"], found["span_bubble_ratio"])
        self.assertEqual(self.json("schedule", "search", "zb-auto", "-p", 4, "-m", 8, "--memory", 2)["gap_pct"], 0)
        # An order of the catalogue, or of a file, is where a search begins: V-1F1B itself takes 63 here.
        own = self.json("schedule", "search", "v-1f1b", "-p", 4, "-m", 8, "--costs", "f=1,b=2")
        self.assertLessEqual(own["span_s"], 63)
        self.assertEqual(own["peak_activations"], 6)
        self.assertLessEqual(self.json("schedule", "search", made, "--costs", question[-1])["span_s"], found["span_s"])
        self.refused(1, "schedule", "search", "seq1f1b", "-p", 2, "-m", 4, "--slices", 2, says=["slices"])

    def test_limits_that_a_schedule_is_checked_against(self):
        self.done("schedule", "check", "1f1b", "-p", 4, "-m", 8, "--max-activations", "4:3:2:1")
        over = plumb("schedule", "check", "gpipe", "-p", 4, "-m", 8, "--max-activations", "4")
        self.assertEqual(over.returncode, 1)
        self.assertIn("rank 0, position 4: 0F4 takes the rank to 5 activations", over.stdout)
        crossing = self.write("crossing.txt", "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                              "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n")
        for sends in ("buffered", "rendezvous"):
            self.done("schedule", "check", crossing, "--sends", sends)
        blocked = plumb("schedule", "check", crossing, "--sends", "blocking")
        self.assertEqual(blocked.returncode, 1)
        self.assertIn("deadlocks where a send holds its rank", blocked.stdout)
        self.refused(1, "simulate", "--schedule", crossing, "--sends", "blocking", says=["deadlocks"])


class BadInput(CommandLineTest):
    def test_a_hundred_megabytes_of_garbage_are_refused_with_bounded_memory(self):
        size = 100_000_000
        garbage = {
            "noise.txt": random.Random(1).randbytes(size),
            "noise.csv": random.Random(2).randbytes(size),
            "noise.json": random.Random(3).randbytes(size),
            "rows.csv": b"\n" * size,
            "cells.csv": b"," * size,
            "same.txt": b"0F0 " * (size // 4),
            "deep.json": b"[" * size,
            "wide.json": b"[" + b"0," * (size // 2),
        }
        for name, contents in garbage.items():
            with self.subTest(name):
                path = self.folder / name
                path.write_bytes(contents)
                result = subprocess.run([PLUMB, "schedule", "check", path], capture_output=True, text=True, timeout=300,
                                        preexec_fn=None if SANITIZED else bound_memory)
                self.assertEqual(result.returncode, 1, result.stderr[:300])
                self.assertLess(len(result.stdout) + len(result.stderr), 300_000)
                self.assertIn(name, result.stdout + result.stderr)
                self.assertNotIn("enough memory", result.stderr)
                path.unlink()

    def test_a_fault_in_a_model_file_names_file_place_and_remedy(self):
        good = json.loads(self.done("models", "gpt2"))
        del good["parameters"]
        output = self.write("plan.json", "kept")

        def refused_with(text, says):
            path = self.write("model.json", text)
            self.refused(1, "plan", path, "h100:8", "--global-batch", 8, "--seq", 128, "-o", output, says=[path, *says])
            self.assertEqual(output.read_text(), "kept")

        refused_with(json.dumps({**good, "hiden": 1}), ["hiden", "unknown", "hidden"])
        refused_with(json.dumps({k: v for k, v in good.items() if k != "layers"}), ["layers", "missing"])
        refused_with(json.dumps({**good, "heads": "12"}), ["heads", "number is wanted"])
        refused_with(json.dumps({**good, "ffn": -1}), ["ffn", "out of range"])
        refused_with(json.dumps({**good, "vocab": 0}), ["vocab", "out of range"])
        refused_with(json.dumps(good)[:-20], ["line", "ends too early"])

    def test_a_fault_in_a_cluster_or_plan_file_is_named(self):
        cluster = json.loads(self.done("clusters", "h100"))
        cluster["network"]["bandwidth_gb_per_s"] = -50
        path = self.write("cluster.json", json.dumps(cluster))
        self.refused(1, "plan", "gpt2", path, "--global-batch", 8, says=[path, "network.bandwidth_gb_per_s"])

        plan = json.loads(self.llama_plan().read_text())
        plan["layout"]["tq"] = 2
        path = self.write("broken.json", json.dumps(plan))
        self.refused(1, "simulate", path, says=[path, "tq"])

    def test_paths_that_do_not_exist_or_cannot_be_written(self):
        self.refused(1, "simulate", self.folder / "absent.json", says=["absent.json", "no such file"])
        self.refused(1, "simulate", self.folder, says=["folder"])
        self.refused(1, "plan", "gpt2", "h100:8", "--global-batch", 8, "-o", self.folder / "no" / "plan.json", says=["cannot be written"])
        self.refused(1, "simulate", self.llama_plan(), "--trace", "/proc/trace.json", says=["/proc/trace.json"])

    def test_usage_exits_2(self):
        for arguments in ((), ("fly",), ("plan",), ("plan", "gpt2", "h100:8", "--global-batch", "-1"), ("simulate", "--sends", "maybe")):
            with self.subTest(arguments):
                self.refused(2, *arguments)

    def test_questions_that_say_too_little_or_too_much(self):
        self.refused(1, "plan", "gpt2", "h100:8", says=["--global-batch"])
        self.refused(1, "simulate", says=["plan file"])
        self.refused(1, "simulate", "--schedule", "1f1b", says=["-p"])
        self.refused(1, "simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", "f=1,q=2", says=["q"])
        self.refused(1, "trace", "info", self.write("t.json", '{"traceEvents": ['), says=["t.json"])

    def nccl_tests_log(self, sizes):
        rows = "".join(f"{size:12} {size // 4:12}  float  sum  -1  {30 + size / 200e3:.2f}  1.0  1.7  0"
                       f"  {30 + size / 200e3:.2f}  1.0  1.7  0\n" for size in sizes)
        ranks = "".join(f"#  Rank {rank:2} Group  0 Pid  9 on  node-0 device {rank:2} [0x1b] NVIDIA H100\n" for rank in range(8))
        return ("# Collective test starting: all_reduce_perf\n" + ranks +
                "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n" + rows +
                "# Avg bus bandwidth    : 100\n")

    def test_a_cluster_is_fitted_from_logs_and_tables(self):
        log = self.write("ar.log", self.nccl_tests_log([1 << power for power in range(12, 31, 2)]))
        table = self.write("gemm.csv", "m,n,k,layout,us\n4096,4096,4096,TN,230\n8192,8192,8192,TN,1800\n")
        mine = self.folder / "mine.json"
        answer = self.json("calibrate", "--from", log, table, "--base", "h100", "-o", mine)
        constants = {constant["path"]: constant for constant in answer["constants"]}
        self.assertIn("nccl.bandwidth_scale", constants)
        self.assertGreater(constants["nccl.simple_launch_us"]["standard_error"], 0)
        self.assertGreater(constants["nccl.simple_launch_us"]["observations"], 3)
        self.assertEqual(constants["device.gemm_efficiency"]["observations"], 2)
        self.assertEqual(len(answer["cluster"]["collective_tables"]), 1)
        self.done("plan", "llama-3-8b", mine, "--global-batch", "64", "--layout", "tp=8", "--seq", "4096")

    def test_measurements_that_cannot_be_read_name_file_and_line(self):
        whole = self.nccl_tests_log([1 << 20, 1 << 22])
        log = self.write("ar.log", whole)
        cut = self.write("cut.log", whole[:whole.index(" 4194304") + 30])
        table = self.write("bad.csv", "m,n,k,us\n1,2,3\n")
        words = self.write("words.txt", "nothing of use\n")
        calibrate = ("calibrate", "-o", self.folder / "mine.json")
        self.refused(1, *calibrate, "--from", cut, "--base", "h100", says=["cut.log:12", "cut"])
        self.refused(1, *calibrate, "--from", table, "--base", "h100", says=["bad.csv:2", "3 cells of 4"])
        self.refused(1, *calibrate, "--from", words, "--base", "h100", says=["words.txt:1", "give one of these"])
        self.refused(1, *calibrate, "--from", log, says=["--base"])
        self.refused(1, *calibrate, "--base", "h100", says=["--from"])

    def test_a_plan_for_another_framework_is_not_run(self):
        plan = self.folder / "plan.json"
        self.done("plan", "gpt-nano", "h100:1", "--global-batch", "4", "--precision", "fp32", "--stack", "megatron-core",
                  "-o", plan)
        self.refused(1, "run", plan, "--backend", "cpu", "--steps", "1", says=["megatron-core", "--stack"])
        self.refused(1, "plan", "gpt-nano", "h100:1", "--global-batch", "4", "--stack", "megatron-cor",
                     says=["megatron-core"])

    def test_version_names_the_optional_parts(self):
        text = self.done("--version")
        for part in ("plumb", "CUDA", "NCCL", "MPI"):
            self.assertIn(part, text)


class Scores(CommandLineTest):
    ROW = {"id": "one", "source": {"repo": "VIA-Research/vTrain"}, "hardware": "A100-80GB SXM, 8 per node",
           "model": {"name": "GPT 3.6B", "layers": 30, "hidden": 3072, "heads": 32, "ffn": 12288, "seq": 2048,
                     "gated_mlp": False},
           "gpus": 64, "gpus_per_node": 8, "tp": 8, "pp": 1, "dp": 8, "mbs": 8, "gbs": 512, "zero": 0,
           "recompute": "full", "precision": "mixed fp16", "schedule": "1F1B", "measured": {"step_time_s": 5.0}}

    def rows(self, *rows):
        return self.write("rows.json", json.dumps({"meta": {}, "rows": list(rows)}))

    def test_score_says_how_far_off_each_row_is(self):
        score = self.json("score", self.rows(self.ROW, dict(self.ROW, id="two", mbs=4)))
        self.assertEqual([row["id"] for row in score["rows"]], ["one", "two"])
        for row in score["rows"]:
            self.assertAlmostEqual(row["error_pct"], 100 * (row["predicted"] / row["measured"] - 1), places=6)
            self.assertAlmostEqual(sum(row["components_s"].values()), row["predicted"], places=6)
            self.assertGreater(row["components_s"]["TP"], 0)
        source = score["sources"][0]
        self.assertEqual((source["file"], source["source"], source["rows"], source["scored"]),
                         ("rows.json", "vtrain", 2, 2))
        self.assertEqual(source["skipped"], [])
        self.assertIsNone(source["memory"])
        self.assertIsNone(source["rank_correlation"])
        errors = [abs(row["error_pct"]) for row in score["rows"]]
        self.assertAlmostEqual(source["step_time"]["mape_pct"], sum(errors) / 2, places=6)
        self.assertAlmostEqual(source["step_time"]["max_pct"], max(errors), places=6)

    def test_collectives_and_timed_operations_stand_beside_whole_runs(self):
        collectives = [{"id": f"{op}-{size}", "collective": op, "gpus": 8, "nodes": 1, "bytes": size << 20,
                        "hardware": "8xH100-SXM", "measured": {"busbw_GBps": busbw}, "source": {"repo": "x/y"}}
                       for op, size, busbw in [("all_reduce", 64, 300), ("all_reduce", 256, 350),
                                               ("all_gather", 64, 250), ("all_gather", 256, 300)]]
        timed = [{"id": f"timed-{m}", "pp": 2, "n_microbatches": m, "schedule": "1F1B",
                  "profiled_ms": {"TF": 10, "TB": 10, "TW": 10, "Tcomm": 0},
                  "measured": {"step_time_ms": 31 * (m + 1)}} for m in (4, 6, 8, 12)]
        file = self.rows(*collectives, *timed)
        text = self.done("score", file)
        self.assertRegex(text, r"timed operations of +runs")
        self.assertRegex(text, r"rows.json +4 +3.2 %")  # 30 (m + 1) against 31 (m + 1)
        self.assertRegex(text, r"h100\S* +4 ")
        answer = self.json("score", file)
        self.assertEqual(len(answer["collectives"]["clusters"]), 1)
        timed = answer["timed_operations"][0]
        self.assertEqual((timed["file"], timed["runs"]), ("rows.json", 4))
        self.assertAlmostEqual(timed["no_constant"]["max_pct"], 100 / 31, places=3)
        for half in timed["halves"]:  # one overhead makes all of them exact: 31 for 30
            self.assertAlmostEqual(half["mape_pct"], 0, places=6)

    def test_a_faulty_row_is_skipped_with_its_reason(self):
        broken = dict(self.ROW, id=None, dp=3)
        source = self.json("score", self.rows(self.ROW, broken, {"measured": None}))["sources"][0]
        self.assertEqual(source["scored"], 1)
        self.assertEqual([row["id"] for row in source["skipped"]], ["rows.json#2", "rows.json#1"])
        self.assertIn("contradictory degrees", source["skipped"][1]["reason"])

    def test_corrections_are_told_with_the_error_without_them(self):
        row = dict(self.ROW, hardware="A100 SXM, one node, NVSwitch", gpus=8, dp=1)
        source = self.json("score", self.rows(row))["sources"][0]
        self.assertEqual(len(source["corrections"]), 1)
        self.assertLess(source["step_time"]["bias_pct"], source["step_time_uncorrected"]["bias_pct"])

    def test_a_figure_can_be_set_for_all_presets(self):
        rows = self.rows(self.ROW)
        slow = self.json("score", rows, "--set", "cluster.device.gemm_efficiency=0.4")["rows"][0]["predicted"]
        fast = self.json("score", rows, "--set", "cluster.device.gemm_efficiency=0.8")["rows"][0]["predicted"]
        self.assertLess(fast, slow)
        self.refused(1, "score", rows, "--set", "cluster.device.gem=1", says=["gem", "did you mean"])
        self.refused(1, "score", rows, "--set", "model.vocab=1", says=["model.vocab=1", "cluster.PATH=VALUE"])

    def test_a_fit_is_judged_on_rows_that_it_does_not_see(self):
        rows = self.rows(*[dict(self.ROW, id=str(mbs), mbs=mbs) for mbs in (1, 2, 4, 8)])
        fit = self.json("score", rows, "--fit", "cluster.device.gemm_efficiency=0.3,0.9", "--holdout", "layout")["fit"]
        self.assertEqual((fit["seen_groups"], fit["unseen_groups"]), (2, 2))
        self.assertLessEqual(fit["fitted_seen"]["mape_pct"], fit["zero_seen"]["mape_pct"])
        self.refused(1, "score", rows, "--fit", "cluster.device.gemm_efficiency=0.3,0.9", says=["one group"])
        self.refused(1, "score", rows, "--fit", "cluster.device.gemm_efficiency=0.3", says=["LOW,HIGH"])

    def test_a_report_and_a_picture_are_written(self):
        page, picture = self.folder / "page.md", self.folder / "scatter.svg"
        text = self.done("score", self.rows(self.ROW), "-o", page, "--svg", picture, "--worst", "1")
        self.assertIn("furthest off", text)
        self.assertIn("| rows.json | step time | 1 | 1 |", page.read_text())
        self.assertIn("PP bubble", page.read_text())
        self.assertIn("</svg>", picture.read_text())

    def test_files_that_are_none_are_refused(self):
        self.refused(1, "score", self.folder / "none.json", says=["none.json"])
        self.refused(1, "score", self.write("cut.json", '{"rows": ['), says=["cut.json"])
        self.refused(1, "score", self.write("rows.json", '{"rows": 3}'), says=["rows.json", "rows"])
        self.refused(1, "score", self.rows(self.ROW), "-o", self.folder / "no" / "page.md", says=["page.md"])


class Running(CommandLineTest):
    """The cpu backend, on a machine that is described by hand: nothing is measured here."""

    def cpu_plan(self, layout, steps_batch=4, *options, devices=2, model="gpt-nano"):
        cluster = {"name": "hand-made", "devices": devices,
                   "device": {"name": "cpu", "peak_tflops": {"fp32": 0.05, "bf16": 0.05, "fp16": 0.05}, "memory_gib": 4, "reserved_gib": 0,
                              "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5, "attention_efficiency": 0.5,
                              "memory_efficiency": 0.5, "kernel_fixed_us": 1, "compute_units": 1, "gemm_tile": 1},
                   "node": {"devices": devices, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}}
        path = self.write("cpu.json", json.dumps(cluster))
        plan = self.folder / "cpu.plan.json"
        self.done("plan", model, path, "--global-batch", steps_batch, "--seq", 32, "--layout", layout, *options, "-o", plan)
        return plan

    def test_a_plan_trains_and_its_loss_falls(self):
        plan = self.cpu_plan("pp=2,schedule=1f1b,mbs=1")
        losses = self.json("run", plan, "--steps", 20)["losses"]
        self.assertEqual(len(losses), 20)
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(losses, self.json("run", plan, "--steps", 20)["losses"])  # the same every time

    def test_layouts_agree_on_the_loss(self):
        losses = [self.json("run", self.cpu_plan(layout), "--steps", 5)["losses"][-1]
                  for layout in ("pp=2,mbs=1,schedule=gpipe", "pp=2,mbs=1,schedule=interleaved,v=2", "dp=2,zero=0,mbs=1")]
        losses += [self.json("run", self.cpu_plan(layout, devices=4), "--steps", 5)["losses"][-1]
                   for layout in ("tp=2,sp=0,pp=2,mbs=1", "tp=2,sp=1,dp=2,zero=0,mbs=1", "cp=2,tp=2,sp=1,zero=0,mbs=1", "cp=2,pp=2,zero=0,mbs=1")]
        losses.append(self.json("run", self.cpu_plan("cp=2,pp=2,zero=0,mbs=1", devices=4), "--steps", 5,
                                "--context", "ulysses")["losses"][-1])
        for loss in losses[1:]:
            self.assertAlmostEqual(loss, losses[0], delta=1e-4 * losses[0])
        answer = self.json("validate", self.cpu_plan("tp=2,sp=1,pp=2,mbs=1", devices=4), "--steps", 2)
        self.assertGreater(answer["step_time"]["measured_s"], 0)

    def test_experts_are_spread_and_agree_on_the_loss(self):
        exact = ("--precision", "fp32")  # rounding to 16 bits may change what a router picks
        for model in ("mixtral-nano", "deepseek-nano"):
            alone = self.json("run", self.cpu_plan("pp=2,mbs=1,schedule=gpipe", 4, *exact, model=model), "--steps", 5)
            self.assertEqual(len(alone["balance_losses"]), 5)
            spread = []
            for layout in ("dp=2,ep=2,zero=1,mbs=1", "dp=2,ep=1,zero=0,mbs=1"):
                spread.append(self.json("run", self.cpu_plan(layout, 4, *exact, model=model), "--steps", 5))
            self.assertLess(spread[0]["weight_bytes"][0], spread[1]["weight_bytes"][0])
            for layout in ("tp=2,dp=2,ep=2,sp=1,zero=0,mbs=1", "cp=2,pp=2,ep=2,zero=0,mbs=1,schedule=zb-h1"):
                spread.append(self.json("run", self.cpu_plan(layout, 4, *exact, devices=4, model=model), "--steps", 5))
            for answer in spread:
                for key in ("losses", "balance_losses"):
                    self.assertAlmostEqual(answer[key][-1], alone[key][-1], delta=1e-4 * alone[key][-1])
        answer = self.json("validate", self.cpu_plan("dp=2,ep=2,zero=0,mbs=1", model="mixtral-nano"), "--steps", 2)
        self.assertGreater(answer["step_time"]["measured_s"], 0)
        self.refused(3, "plan", "mixtral-nano", self.folder / "cpu.json", "--global-batch", 4, "--seq", 32, "--layout", "tp=2,etp=1",
                     says=["etp=2"])
        self.refused(3, "plan", "mixtral-nano", self.folder / "cpu.json", "--global-batch", 4, "--seq", 32, "--layout", "tp=2,ep=2",
                     says=["ep=2"])

    def test_dropout_is_the_same_in_every_layout(self):
        model = {"name": "dropping", "layers": 2, "hidden": 32, "heads": 4, "ffn": 64, "vocab": 256, "dropout": 0.2}
        path = self.write("dropping.json", json.dumps(model))
        losses = [self.json("run", self.cpu_plan(layout, model=path, devices=4), "--steps", 4)["losses"]
                  for layout in ("pp=2,dp=2,mbs=1,zero=0", "tp=2,sp=1,dp=2,mbs=2,zero=0,recompute=full", "cp=2,tp=2,sp=0,mbs=1,zero=0")]
        for other in losses[1:]:
            self.assertAlmostEqual(other[-1], losses[0][-1], delta=1e-4 * losses[0][-1])
        path.write_text(json.dumps({**model, "dropout": 0}))
        without = self.json("run", self.cpu_plan("pp=2,dp=2,mbs=1,zero=0", model=path, devices=4), "--steps", 4)
        self.assertNotAlmostEqual(without["losses"][-1], losses[0][-1], delta=1e-4 * losses[0][-1])
        self.assertIsNone(without["balance_losses"])

    def test_state_is_sharded_in_16_bits_by_any_optimizer(self):
        alone = self.json("run", self.cpu_plan("pp=2,mbs=1,schedule=gpipe"), "--steps", 5, "--clip-norm", 0.5)
        for layout in ("pp=1,dp=2,mbs=1,zero=1,bucket_mib=1", "pp=1,dp=2,mbs=1,zero=2", "pp=1,dp=2,mbs=1,zero=3"):
            answer = self.json("run", self.cpu_plan(layout), "--steps", 5, "--clip-norm", 0.5)
            self.assertAlmostEqual(answer["losses"][-1], alone["losses"][-1], delta=1e-4 * alone["losses"][-1])
            self.assertAlmostEqual(answer["optimizer_bytes"][0], sum(alone["optimizer_bytes"]) / 2,
                                   delta=16)
        plan = self.cpu_plan("pp=1,dp=2,mbs=1,zero=0")
        sharded = self.json("run", plan, "--steps", 5, "--schedule", "gpipe", "--shard", 1, "--prefetch")
        self.assertAlmostEqual(sharded["losses"][-1], self.json("run", plan, "--steps", 5)["losses"][-1], delta=1e-3)
        for precision, optimizer in (("bf16", "lion"), ("fp16", "sgd"), ("bf16", "adafactor"), ("fp32", "adamw-8bit")):
            plan = self.cpu_plan("pp=2,mbs=1", 4, "--precision", precision, "--optimizer", optimizer)
            answer = self.json("run", plan, "--steps", 12, "--offload-optimizer")
            self.assertLess(answer["losses"][-1], answer["losses"][0])
            self.assertGreater(answer["peak_host_bytes"][0], 0)
        self.refused(1, "run", self.cpu_plan("pp=1,dp=2,mbs=1,zero=1", 4, "--optimizer", "adafactor"), says=["Adafactor", "ZeRO"])

    def test_pipeline_ranks_may_be_meshes_of_different_shape(self):
        plan = self.cpu_plan("pp=2,mbs=2")
        alone = self.json("run", plan, "--steps", 5)["losses"][-1]
        for meshes in ("tp2,dp2", "dp2,tp2", "dp2tp2,tp1"):
            for reshard in ("direct", "all-gather", "broadcast"):
                loss = self.json("run", plan, "--steps", 5, "--meshes", meshes, "--reshard", reshard)["losses"][-1]
                self.assertAlmostEqual(loss, alone, delta=1e-4 * alone)
        answer = self.json("run", "mlp", "--schedule", "1f1b", "-p", 2, "-m", 4, "--microbatch-size", 4, "--steps", 3, "--meshes", "dp2,dp1",
                           "--baseline")
        self.assertAlmostEqual(answer["losses"][-1], answer["baseline_losses"][-1], delta=1e-4)
        self.refused(1, "run", plan, "--meshes", "tp2", says=["--meshes", "2 pipeline ranks"])
        self.refused(1, "run", plan, "--meshes", "tp2,pp2", says=["\"pp2\" is no mesh"])
        self.refused(1, "run", plan, "--meshes", "tp2,dp4", says=["micro-batch of 2 sequences"])
        self.refused(1, "run", plan, "--reshard", "direct", says=["--meshes"])

    def test_meshes_of_different_shape_are_predicted(self):
        question = ["llama-2-7b", "h100:8", "--global-batch", 16, "--layout", "pp=2,tp=4,mbs=2"]
        answer = self.json("simulate", *question, "--meshes", "tp4,dp2tp2")
        self.assertEqual([(rank["dp"], rank["tp"], rank["mbs"]) for rank in answer["ranks"]], [(1, 4, 2), (2, 2, 1)])
        self.assertEqual([(way["from"], way["to"]) for way in answer["reshardings"]], [(0, 1), (1, 0)])
        times = {}
        for reshard in ("direct", "all-gather", "broadcast"):
            told = self.json("simulate", *question, "--meshes", "tp4,dp2tp2", "--reshard", reshard)
            self.assertEqual({way["kind"] for way in told["reshardings"]}, {reshard})
            times[reshard] = told["reshardings"][0]["time_s"]
        self.assertEqual(answer["reshardings"][0]["time_s"], min(times.values()))
        self.assertIn("crosses", self.done("simulate", *question, "--meshes", "tp4,dp2tp2"))
        self.refused(1, "simulate", *question, "--meshes", "tp4", says=["2", "give each one"])
        self.refused(1, "simulate", *question, "--reshard", "direct", says=["--meshes"])
        self.refused(1, "simulate", *question, "--meshes", "tp4,tp4", "--draw", says=["--meshes", "--draw"])

    def test_layers_are_computed_again_and_state_moves_by_layer(self):
        plan = self.cpu_plan("pp=1,dp=2,mbs=1,zero=3")
        whole = self.json("run", plan, "--steps", 5)
        for options in (("--recompute-every", 2), ("--zero-layerwise",), ("--zero-by", "layer", "--zero-layerwise")):
            answer = self.json("run", plan, "--steps", 5, *options)
            self.assertAlmostEqual(answer["losses"][-1], whole["losses"][-1], delta=1e-4)
            self.assertLess(answer["peak_memory_bytes"][0], whole["peak_memory_bytes"][0])

    def test_a_run_killed_at_any_moment_goes_on_to_the_same_losses(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        steps = 14
        whole = self.json("run", plan, "--steps", steps)["losses"]
        folder = self.folder / "state"
        arguments = ("run", plan, "--steps", steps, "--checkpoint-dir", folder, "--checkpoint-every", 1)
        for moment in (0.02, 0.07, 0.11):  # s behind the first checkpoint, in the middle of steps and of writing
            (folder / "checkpoint.plumb").unlink(missing_ok=True)
            process = subprocess.Popen([PLUMB, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not (folder / "checkpoint.plumb").exists() and process.poll() is None:
                time.sleep(0.001)
            time.sleep(moment)
            process.kill()
            process.wait()
            if process.returncode == 0:
                continue  # it was done already
            answer = self.json(*arguments, "--resume")
            self.assertGreaterEqual(answer["first_step"], 1)
            self.assertEqual(answer["losses"], whole[answer["first_step"]:])
        self.assertEqual([path.name for path in folder.iterdir()], ["checkpoint.plumb"])
        other = self.cpu_plan("pp=1,dp=2,mbs=1,zero=1")
        more = self.json("run", other, "--steps", steps + 2, "--checkpoint-dir", folder, "--resume")["losses"]
        self.assertEqual(len(more), 2)
        self.refused(1, *arguments, "--resume", says=["checkpoint.plumb has 16 steps", "ask for more"])
        self.refused(1, "run", plan, "--steps", 30, "--checkpoint-dir", folder, "--resume", "--seed", 5, says=["seed"])
        (folder / "checkpoint.plumb").write_bytes((folder / "checkpoint.plumb").read_bytes()[:5000])
        self.refused(1, "run", plan, "--steps", 30, "--checkpoint-dir", folder, "--resume", says=["cut short", "5000 bytes"])
        self.refused(2, "run", plan, "--resume", says=["--checkpoint-dir"])

    def test_validation_predicts_first_and_says_where_the_error_comes_from(self):
        prediction = self.folder / "prediction.json"
        trace = self.folder / "measured.json"
        answer = self.json("validate", self.cpu_plan("pp=2,mbs=1,schedule=1f1b"), "--steps", 3, "-o", prediction, "--trace", trace)
        self.assertEqual(answer["step_time"]["predicted_s"], json.loads(prediction.read_text())["step_time_s"])
        self.assertEqual(answer["steps"], 3)
        difference = sum(c["predicted_s"] - c["measured_s"] for c in answer["causes"])
        self.assertAlmostEqual(difference, answer["step_time"]["predicted_s"] - answer["step_time"]["measured_s"], places=9)
        for rank in answer["ranks"]:  # the loop's own time is a part of what the rank idles; none was predicted
            self.assertEqual(rank["overhead"]["predicted_s"], 0)
            self.assertLess(0, rank["overhead"]["measured_s"])
            self.assertLessEqual(rank["overhead"]["measured_s"], rank["idle"]["measured_s"])
        self.assertEqual(self.json("trace", "info", trace)["source"], "measured")

    def test_a_plan_replays_other_schedules_with_the_same_loss(self):
        plan = self.cpu_plan("pp=2,schedule=1f1b,mbs=1")
        own = self.json("run", plan, "--steps", 4)
        self.assertEqual(own["peak_host_bytes"], [0, 0])
        moved = self.json("run", plan, "--steps", 4, "--schedule", "gpipe", "--offload", 1)
        self.assertEqual(moved["losses"], own["losses"])  # both add gradients in the order of the micro-batches
        self.assertGreater(moved["peak_host_bytes"][0], 0)
        order = self.folder / "order.txt"
        self.done("schedule", "make", "bfs", "-p", 2, "-m", 4, "-v", 2, "--lowered", "--shard", 1, "-o", order)
        for schedule in (("seq1f1b", "--slices", 3), ("zb-h1", "--checkpoint", "always"), (order,)):
            losses = self.json("run", plan, "--steps", 4, "--schedule", *schedule)["losses"]
            self.assertAlmostEqual(losses[-1], own["losses"][-1], delta=1e-4 * own["losses"][-1])
        self.refused(1, "run", plan, "--schedule", "1f1b", "-m", 5, says=["5 micro-batches", "4"])
        self.refused(1, "run", plan, "--offload", 1, says=["--schedule"])

    def test_networks_train_by_name_beside_one_rank(self):
        for network in ("mlp", "alexnet-32"):
            for schedule in ("1f1b", "zb-h1", "dualpipe"):
                answer = self.json("run", network, "--schedule", schedule, "-p", 2, "-m", 4, "--steps", 3, "--baseline",
                                   "--split", "parameters", "--microbatch-size", 2)
                self.assertEqual(len(answer["losses"]), 3)
                for loss, alone in zip(answer["losses"], answer["baseline_losses"]):
                    self.assertAlmostEqual(loss, alone, delta=1e-4 * alone)
        images = self.folder / "data_batch_1.bin"
        images.write_bytes(b"".join(bytes([label]) + bytes(3072) for label in range(10)))
        on_images = ("run", "alexnet-32", "--schedule", "gpipe", "-p", 2, "-m", 2, "--steps", 1, "--images", images)
        self.assertIn("on one rank", self.done(*on_images, "--normalise", "--baseline"))
        images.write_bytes(bytes(5))
        self.refused(1, *on_images, says=["data_batch_1.bin", "5 bytes", "3073"])

    def test_a_network_that_cannot_be_split_so_is_refused(self):
        run = ("run", "mlp", "-p", 2, "-m", 2, "--schedule", "1f1b", "--split")
        self.refused(1, *run, "6,0", says=["stage 1 empty"])
        self.refused(1, *run, "4,4", says=["places 8", "has 6"])
        self.refused(1, *run, "type:convolution", says=["no layer of such a kind"])
        self.refused(1, "run", "mlp", "-p", 7, "-m", 2, "--schedule", "gpipe", says=["7 stages", "6 layers"])
        self.refused(1, "run", "mlp", says=["--schedule"])
        self.refused(1, "run", "mlp", "-p", 2, "-m", 4, "--schedule", "pipedream", "--baseline", says=["asynchronous"])

    def test_schedules_are_replayed_by_the_clock(self):
        costs = ("--schedule", "1f1b", "-p", 3, "-m", 4, "--costs", "f=2,b=4,c=1,unit=ms")
        answer = self.json("run", "--backend", "timed", *costs, "--steps", 2)
        self.assertEqual(len(answer["step_times_s"]), 2)
        self.assertEqual(answer["predicted_step_time_s"], self.json("simulate", *costs)["step_time_s"])
        self.assertGreaterEqual(min(answer["step_times_s"]), answer["predicted_step_time_s"])
        trace = self.folder / "timed.json"
        compared = self.json("validate", "--backend", "timed", *costs, "--slow", "rank=1:0.5", "--steps", 2, "--trace", trace)
        self.assertIsNone(compared["losses"])
        forwards = {op["stage"]: op["measured_s"] for op in compared["ops"] if op["op"] == "F"}
        self.assertGreaterEqual(forwards[1], 0.004)
        self.assertEqual(self.json("trace", "info", trace)["source"], "measured")
        lanes = self.folder / "lanes.json"
        twice = self.json("validate", "--backend", "timed", *costs, "--steps", 2, "--repeat", 2, "--lanes", lanes)
        self.assertEqual(twice["steps"], 4)
        self.assertAlmostEqual(twice["step_time_interval"]["confidence_ratio"], 1 - 2 / 16)
        names = [e["args"]["name"] for e in json.loads(lanes.read_text())["traceEvents"] if e["name"] == "process_name"]
        self.assertEqual([name.split(":")[0] for name in names[::3]], ["rank 0 predicted", "rank 0 measured"])
        beyond = plumb("validate", "--backend", "timed", *costs, "--steps", 1, "--tolerance", 0)
        self.assertEqual(beyond.returncode, 1)
        self.assertIn("tolerance is 0 %", beyond.stderr)
        self.assertIn("measured", beyond.stdout)  # the answer stands all the same
        self.refused(1, "run", says=["plan file"])
        self.refused(1, "run", "alexnett", "--schedule", "1f1b", "-p", 2, "-m", 4, says=['did you mean "alexnet"'])
        self.refused(1, "simulate", *costs, "--burst-kib", -3, says=["a burst of -3072 bytes", "give 0 for none"])
        self.refused(1, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 2, says=["--costs"])
        self.refused(1, "run", self.cpu_plan("pp=2,mbs=1"), "--slow", "rank=0:0.5", says=["--backend timed"])
        self.refused(1, "run", "--backend", "timed", *costs, "--shrink", 0, says=["1 or more"])

    def test_collectives_are_measured_beside_the_model(self):
        answer = self.json("calibrate", "--only", "collectives", "--ranks", 3, "--budget", 1)
        self.assertGreater(answer["slowdown"]["compute_alone_s"], 0)
        self.assertIn("collective_slowdown", answer["slowdown"])
        rows = answer["collectives"]
        self.assertEqual(len(rows), 16 * 4)  # seven by ring and tree, two with one algorithm; four sizes
        self.assertTrue(all(row["time_s"] > 0 and row["ranks"] == 3 for row in rows))
        for row in rows:
            priced = row["collective"] in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
            self.assertEqual(row["predicted_s"] is not None, priced and row["algorithm"] != "tree")
        self.refused(1, "calibrate", "--only", "collectives", "-o", self.folder / "c.json", says=["--output"])
        self.refused(1, "calibrate", says=["--output"])

    def test_what_the_backend_cannot_run_is_refused(self):
        self.refused(1, "run", self.llama_plan(), says=["GiB together", "this machine has"])
        plan = self.cpu_plan("pp=2,mbs=1")
        self.refused(1, "run", plan, "--text", self.write("short.txt", "too short"), says=["short.txt", "9 bytes", "longer text"])
        self.refused(2, "run", plan, "--backend", "abacus")
        shared = self.cpu_plan("cp=2,tp=2,sp=1,zero=0,mbs=1", devices=4)  # 3 heads a tensor rank
        self.refused(1, "run", shared, "--context", "ulysses", says=["3 heads", "2 context ranks"])


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print(f"[cases] {result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)

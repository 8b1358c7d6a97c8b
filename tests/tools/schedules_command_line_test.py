#!/usr/bin/env python3
"""Checks schedules on the command line: predictions, closed forms, searches and refusals.

usage: schedules_command_line_test.py PLUMB
"""
import json
import pathlib
import re

from command_line import CommandLineTest, plumb, run_cases


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
        self.refused(2, *question, "--noise", "cv=0.1,runs=0", says=["noise", "1 or more"])
        slow = self.json(*question, "--noise", "cv=0.1,runs=20", "--slow", "rank=1:0.5")
        self.assertEqual(slow["noise"]["step_time_without_noise_s"], slow["step_time_s"])
        self.assertGreater(slow["step_time_s"], quiet["step_time_s"])

    def test_moves_share_the_hosts_memory(self):
        question = ("simulate", "--schedule", "1f1b", "-p", 8, "-m", 16, "--offload", 2, "--costs")
        alone = self.json(*question, "f=1,b=2,x=1.5")
        self.assertEqual(alone["engine"], "compiled")
        self.assertEqual(self.json(*question, "f=1,b=2,x=1.5,host=16")["makespan_s"], alone["makespan_s"])
        wide = self.json(*question, "f=1,b=2,x=1.5,host=3")  # more than 3 ranks move at once
        self.assertEqual(wide["engine"], "events")
        self.assertGreaterEqual(wide["makespan_s"], alone["makespan_s"])
        shared = self.json(*question, "f=1,b=2,x=1.5,host=1")
        self.assertEqual(shared["engine"], "events")
        self.assertGreater(shared["makespan_s"], alone["makespan_s"])
        sensitivity = shared["sensitivity"]
        self.assertGreater(sensitivity["shared_links"]["host_memory"], 0)
        self.assertAlmostEqual(sum(sensitivity["compute_by_stage_s"]) + sensitivity["moves_s"] + sensitivity["capacity_s"],
                               shared["makespan_s"], places=6)
        self.refused(2, "simulate", "--schedule", "1f1b", "-p", 4, "-m", 4, "--costs", "host=2", says=["host=", "x="])
        self.refused(2, *question, "host=0", says=["host=", "above 0"])

    def test_a_step_that_no_timeline_holds_is_refused(self):
        late = ["that can be simulated", "fewer micro-batches"]
        gpipe = ["simulate", "--schedule", "gpipe", "-p", 4, "-m", 64, "--costs"]
        self.refused(1, "simulate", "--schedule", "1f1b", "-p", 2, "-m", 1_000_000, "--costs", "f=10,b=20", says=late)
        self.refused(1, *gpipe, "f=1e5,b=2e5", says=[*late, "B of stage 3"])
        self.refused(1, *gpipe, "f=1e5,b=2e5", "--noise", "cv=0.1,runs=2", says=late)
        self.refused(1, *gpipe, "f=1e5,b=2e5,mib=1,gb_per_s=1", "--burst-kib", 1, says=late)
        self.refused(2, *gpipe, "f=1e300", says=["--costs: a f= of 1e+300 s"])
        self.refused(1, *gpipe, "f=1,b=2", "--slow", "rank=0:1e-7", says=[*late, "1e-07 of its speed"])
        self.refused(1, "schedule", "search", "zb-auto", "-p", 4, "-m", 64, "--costs", "f=1e5,i=1e5,w=1e5", says=late)
        self.refused(1, "schedule", "search", "1f1b", "-p", 4, "-m", 64, "--costs", "f=1e5,b=2e5", says=late)
        model = ["simulate", "llama-3-8b", "h100:16", "--global-batch", 64, "--layout", "pp=4,tp=2,dp=2,mbs=1"]
        self.refused(1, *model, "--slow", "rank=0:1e-7", says=[*late, "1e-07 of its speed"])
        self.refused(1, *model, "--degrade", "nic:node0=1e-15", says=[*late, "nic"])
        self.assertEqual(self.json(*gpipe, "f=1e4,b=2e4")["makespan_s"], 67 * 3e4)

    def test_the_critical_path_adds_up_and_names_the_slow_rank(self):
        model = ["simulate", "llama-3-8b", "h100:16", "--global-batch", 64, "--seq", 4096, "--layout", "pp=4,tp=2,dp=2,mbs=1"]
        for options in (["--links", "private"], [], ["--slow", "rank=3:0.8"], ["--slow", "rank=3:0.8", "--unfolded"]):
            answer = self.json(*model, *options)
            self.assertAlmostEqual(sum(step["adds_s"] for step in answer["critical_path"]), answer["makespan_s"], places=9)
            self.assertEqual(len(answer["slow_ranks"]), options.count("--slow"))
            for slow in answer["slow_ranks"]:
                self.assertEqual((slow["rank"], slow["speed"]), (3, 0.8))
                self.assertGreater(slow["on_critical_path_s"], 0.5 * answer["makespan_s"])
        self.assertRegex(self.done(*model, "--slow", "rank=3:0.8"),
                         r"slow rank 3, at 0.8 of its speed: 1\.\d+ s of the critical path")
        schedule = ["simulate", "--schedule", "1f1b", "-p", 4, "-m", 8, "--costs", "f=1:1:1:0.1,b=2:2:2:0.2"]
        self.assertIn("slow rank 3, at 0.9 of its speed: not on the critical path",
                      self.done(*schedule, "--slow", "rank=3:0.9"))

    def test_an_ill_conditioned_step_tells_its_spread_and_no_sensitivities(self):
        devices = [f"d{i}" for i in range(16)]
        links = [{"from": d, "to": "odd" if i % 2 else "even", "bandwidth_gb_per_s": 50, "latency_us": 2}
                 for i, d in enumerate(devices)]
        links.append({"from": "even", "to": "odd", "bandwidth_gb_per_s": 3, "latency_us": 2})
        topology = self.write("topology.json", json.dumps(
            {"nodes": [*devices, "even", "odd"], "devices": devices, "links": links}))
        question = ["simulate", "llama-2-70b", "h100:16", "--global-batch", 64, "--seq", 4096, "--topology", topology, "--layout",
                    "pp=16,tp=1,dp=1,mbs=1,schedule=1f1b,zero=1,recompute=full"]
        answer = self.json(*question)
        self.assertIsNone(answer["sensitivity"])
        self.assertTrue(answer["conditioning"]["is_ill"])
        self.assertGreater(answer["conditioning"]["number"], answer["conditioning"]["most"])
        for kind in ("picosecond", "per_mille"):
            spread = answer["conditioning"]["step_with_noise"][kind]
            self.assertLess(spread["shortest_s"], spread["longest_s"])
            self.assertLess(abs(spread["longest_s"] / answer["makespan_s"] - 1), 0.5)
        self.assertEqual(self.json(*question)["conditioning"], answer["conditioning"])
        text = self.done(*question)
        self.assertIn("no sensitivities: the step is ill-conditioned", text)
        self.assertNotIn("each 1 % longer", text)
        well = self.json("simulate", "llama-3-8b", "h100:16", "--global-batch", 16, "--layout", "dp=2,tp=4,pp=2")
        self.assertFalse(well["conditioning"]["is_ill"])
        self.assertIsNone(well["conditioning"]["step_with_noise"])
        self.assertTrue(well["sensitivity"])

    def test_a_plans_replicas_wait_for_the_slowest(self):
        plan = self.llama_plan()
        answer = self.json("simulate", plan, "--links", "private", "--noise", "cv=0.05,runs=50")
        self.assertEqual(answer["noise"]["step_time_without_noise_s"], answer["step_time_s"])
        self.assertGreater(answer["noise"]["slowdown_ratio"], 1)

    def test_a_plan_says_what_communication_costs_and_what_each_figure_of_the_cluster_is_worth(self):
        answer = self.json("simulate", "llama-3-8b", "h100:16", "--global-batch", 16, "--layout", "dp=2,tp=4,pp=2",
                           "--links", "private", "--stack", "plumb")
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
                   "dp=4,tp=4,pp=2,zero=0,mbs=1,schedule=1f1b,v=1", "--stack", "plumb")
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
        layout = ("simulate", "llama-2-7b", "h100:32", "--global-batch", 64, "--layout",
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

    def test_small_layers_under_tensor_parallelism_wait_for_the_host(self):
        stack = json.loads((pathlib.Path(__file__).parents[2] / "tools" / "specs" / "stacks" / "nemo.json").read_text())
        at_once = self.folder / "at_once.json"
        at_once.write_text(json.dumps({**stack, "kernel_launch_us": 0}))
        for model, devices, factor in (("gpt2-medium", 8, 1.5), ("llama-3-70b", 64, 1)):
            layout = ("simulate", model, f"h100:{devices}", "--global-batch", devices, "--seq", 1024, "--layout",
                      f"tp=8,pp={devices // 8},dp=1,mbs=1,sp=1,zero=0,schedule=1f1b", "--stack")
            launched, free = (self.json(*layout, named)["makespan_s"] for named in ("nemo", at_once))
            if factor > 1:
                self.assertGreater(launched, factor * free)
            else:
                self.assertAlmostEqual(launched / free, 1, delta=0.02)

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
        self.refused(2, "simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--topology", written("any.json"),
                     says=["--topology", "give a plan"])

    def test_checkpointing_puts_the_recomputation_into_the_order(self):
        for verb in ("make", "convert"):
            self.assertIn("0R0 0B0", self.done("schedule", verb, "1f1b", "-p", 2, "-m", 2, "--checkpoint", "always"))
        order = self.folder / "order.txt"
        self.done("schedule", "make", "1f1b", "-p", 2, "-m", 2, "-o", order)
        self.assertIn("0R0 0B0", self.done("schedule", "convert", order, "--checkpoint", "always"))
        self.refused(1, "schedule", "make", "forward-only", "-p", 2, "-m", 2, "--checkpoint", "always", says=["no backward"])

    def test_a_default_that_changes_the_question_is_said_in_the_first_line(self):
        sizes = ("-p", 4, "-m", 8)
        self.assertIn("(by default -v 1)", self.done("schedule", "show", "interleaved", *sizes).splitlines()[0])
        self.assertNotIn("by default", self.done("schedule", "show", "interleaved", *sizes, "-v", 1).splitlines()[0])
        self.assertIn("(by default -v 1)", self.done("simulate", "--schedule", "interleaved", *sizes).splitlines()[0])
        self.assertIn("(by default --slices 1)", self.done("schedule", "check", "seq1f1b", *sizes).splitlines()[0])
        self.assertIn("(by default --memory 1)", self.done("schedule", "search", "zb-auto", *sizes).splitlines()[0])
        self.assertNotIn("by default", self.done("schedule", "show", "1f1b", *sizes))

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
        self.refused(2, "schedule", "make", "1f1b", "-p", 2, "-m", 2, "--shard", 1, says=["--lowered"])
        self.refused(1, "schedule", "make", "bpipe", "-p", 8, "-m", 8, "--offload", 1, says=["0EVICT4"])
        self.refused(2, "schedule", "make", "1f1b", "-p", 2, "-m", 2, "--offload", -1, says=["--offload", "0 or more"])
        self.refused(2, "schedule", "make", "1f1b", "-p", 2, "-m", 2, "--prefetch", says=["--shard"])

    def test_shards_are_simulated_and_no_plan_or_backend_takes_them(self):
        costs = "f=2:2:1:1,i=2:2:1:1,w=2:2:1:1"
        answer = self.json("simulate", "--schedule", "vocab-2", "-p", 2, "-m", 8, "--costs", costs)
        # 8 intervals of F + B = 6 and S + T = 3, and the filling and draining of the pipeline: F + B and an interval.
        self.assertGreaterEqual(answer["step_time_s"], 8 * 9)
        self.assertLessEqual(answer["step_time_s"], 8 * 9 + 6 + 9)
        self.refused(3, "plan", "deepseek-nano", "h100", "--devices", 2, "--global-batch", 8, "--layout",
                     "schedule=vocab-2,pp=2", says=["cuts the output layer into shards", "schedule=1f1b"])
        self.refused(1, "run", "--schedule", "vocab-1", "-p", 2, "-m", 4, "--costs", "f=0.001,b=0.002", "--backend",
                     "timed", says=["shards of a model part", "no backend"])
        self.refused(1, "schedule", "search", "vocab-1", "-p", 2, "-m", 4, says=["cannot be searched", "shards"])
        self.refused(1, "schedule", "make", "vocab-1f1b", "-p", 2, "-m", 4, says=["vocab-2", "vocab-1"])

    def test_attention_apart_from_its_layers_is_simulated_and_no_plan_or_backend_takes_it(self):
        costs = "f=1:6:3:6:2,i=1:6:3:6:2,w=1:0:3:0:2,unit=ms"  # two layers: by model part, for the stages of two lanes
        answer = self.json("simulate", "--schedule", "helixpipe", "-p", 2, "-m", 2, "--costs", costs)
        # Between two attentions F and B are 9 ms; each of 2 ranks and micro-batches has one layer of 9 + 12 ms.
        self.assertAlmostEqual(answer["step_time_s"], (2 * (9 + 12) + 9) / 1000, places=12)
        self.assertEqual(answer["peak_activations"], [6, 4])
        self.refused(3, "plan", "deepseek-nano", "h100", "--devices", 2, "--global-batch", 8, "--layout",
                     "schedule=helixpipe,pp=2", says=["divides layers into model parts", "schedule=1f1b"])
        self.refused(1, "run", "--schedule", "helixpipe", "-p", 2, "-m", 4, "--costs", "f=0.001,i=0.001,w=0.001",
                     "--backend", "timed", says=["without weights", "no backend"])
        self.refused(1, "schedule", "search", "helixpipe", "-p", 2, "-m", 4, says=["cannot be searched"])
        self.refused(1, "simulate", "--schedule", "helixpipe", "-p", 2, "-m", 4, "--costs", "f=1:2,i=1,w=1",
                     says=["5 model parts", "one for each part"])
        self.refused(1, "simulate", "--schedule", "helixpipe", "-p", 2, "-m", 4, "--costs", "f=1,b=2",
                     says=["splits them", "give i= and w="])

    def test_tensor_parallel_exchanges_hide_in_the_pairs_of_stp(self):
        layout = "tp=8,pp=4,v=2,mbs=1,schedule="
        plan = ("simulate", "llama-3-8b", "h100:32", "--global-batch", 64, "--layout")
        braided, apart = self.json(*plan, layout + "stp"), self.json(*plan, layout + "zb-v")
        self.assertLess(braided["step_time_s"], apart["step_time_s"])
    def test_weights_travel_in_place_of_activations(self):
        question = ("-p", 4, "-m", 8, "--costs", "f=2,b=4,weights=0.5")
        answer = self.json("simulate", "--schedule", "WeiPipe-Interleave", *question)
        self.assertEqual(answer["step_time_s"], 8 * 6 + 7 * 0.5)  # floor(3(p+1)/2) messages
        self.assertEqual(answer["peak_activations"], [4, 4, 4, 4])
        self.assertEqual(self.json("simulate", "--schedule", "tawpipe", *question)["step_time_s"], 8 * 6 + 2 * 0.5)
        nodes = self.json("simulate", "--schedule", "tawpipe", *question, "--node-ranks", 2)
        self.assertEqual(nodes["step_time_s"], 8 * 6 + 4 * 0.5)
        traffic = self.json("schedule", "check", "weipipe", "-p", 4, "-m", 8)["weight_traffic"]
        self.assertEqual([rank["gradients_sent"] for rank in traffic], [10, 9, 8, 7])
        self.assertIsNone(self.json("schedule", "check", "1f1b", "-p", 4, "-m", 8)["weight_traffic"])
        made = self.folder / "weipipe.txt"
        self.done("schedule", "make", "weipipe", "-p", 4, "-m", 8, "-o", made)
        self.assertIn("4SEND_WEIGHTS8", made.read_text())
        self.assertEqual(self.json("simulate", "--schedule", made, *question[4:])["step_time_s"], answer["step_time_s"])
        self.refused(1, "schedule", "make", "weipipe", "-p", 2, "-m", 2, "-o", self.folder / "weipipe.csv", says=["PyTorch"])
        self.refused(1, "schedule", "make", "tawpipe", "-p", 4, "-m", 4, "--node-ranks", 3, says=["give a divisor"])
        self.refused(1, "schedule", "make", "1f1b", "-p", 4, "-m", 4, "--node-ranks", 2, says=["use tawpipe"])
        self.refused(1, "schedule", "make", "weipipe-naive", "-p", 4, "-m", 4, says=["weipipe interleaves them"])
        self.refused(3, "plan", "deepseek-nano", "h100", "--devices", 2, "--global-batch", 8, "--layout",
                     "schedule=weipipe,pp=2", says=["sends weights from rank to rank", "schedule=1f1b"])
        self.refused(1, "run", "--schedule", "tawpipe", "-p", 2, "-m", 4, "--costs", "f=0.001,b=0.002", "--backend",
                     "timed", says=["weights travel", "no backend"])
        self.refused(1, "schedule", "search", "weipipe", "-p", 2, "-m", 4, says=["cannot be searched"])

    def test_offloading_what_lives_longest(self):
        plain = ("simulate", "--schedule", "interleaved", "-p", 4, "-m", 8, "-v", 2, "--costs", "f=1,b=2,x=1")
        kept, moved = self.json(*plain), self.json(*plain, "--offload-stages", 1)
        self.assertEqual(kept["peak_activations"], [11, 9, 7, 5])
        self.assertLess(max(moved["peak_activations"]), 11)
        self.assertEqual(moved["step_time_s"], kept["step_time_s"])  # moves are hidden
        order = self.done("schedule", "make", "interleaved", "-p", 4, "-m", 8, "-v", 2, "--offload-stages", 1)
        self.assertIn("0OFFLOAD0", order)
        self.assertNotIn("4OFFLOAD", order)
        self.refused(2, *plain, "--offload-stages", 1, "--offload", 1, says=["--offload"])
        self.refused(1, "schedule", "make", "bpipe", "-p", 8, "-m", 8, "--offload-stages", 1, says=["0EVICT4"])

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

    def test_a_name_that_is_none_is_said_ahead_of_what_is_missing(self):
        self.refused(1, "schedule", "show", "zb", says=["zb-h1", "plumb schedule list"])
        self.refused(2, "schedule", "show", "1f1b", says=["-p", "-m"])

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
        self.refused(2, "schedule", "show", "1f1b", "-p", 2, "-m", 2, "-o", self.folder / "x.png", says=[".svg"])

    def test_a_search_states_its_gap_and_writes_a_schedule_that_any_verb_takes(self):
        made = self.folder / "made.csv"
        question = ["-p", 4, "-m", 8, "--costs", "f=1000,i=1500,w=800"]
        found = self.json("schedule", "search", "ZB-V", *question, "-o", made)
        self.assertEqual(found["span_bound_s"], 56200)  # more than the work of a rank, 52800: memory makes it idle
        self.assertLessEqual(found["span_s"], 56200)  # what the authors' scheduler reports for these costs
        self.assertAlmostEqual(found["gap_pct"], 100 * (found["span_s"] / found["span_bound_s"] - 1), places=9)
        self.assertLessEqual(found["peak_activations"], 8)
        self.done("schedule", "check", made, "--max-activations", 8)
        simulated = self.json("simulate", "--schedule", made, "--costs", question[-1])
        self.assertEqual(simulated["span_bubble_ratio"], found["span_bubble_ratio"])
        self.assertEqual(self.json("schedule", "search", "zb-auto", "-p", 4, "-m", 8, "--memory", 2)["gap_pct"], 0)
        # A search begins with an order of the catalogue or of a file; V-1F1B itself takes 63 here.
        own = self.json("schedule", "search", "v-1f1b", "-p", 4, "-m", 8, "--costs", "f=1,b=2")
        self.assertLessEqual(own["span_s"], 63)
        self.assertEqual(own["peak_activations"], 6)
        self.assertLessEqual(self.json("schedule", "search", made, "--costs", question[-1])["span_s"], found["span_s"])
        for name in ("bpipe", "pipedream", "forward-only", "vocab-1"):
            self.refused(1, "schedule", "search", name, "-p", 4, "-m", 4, says=["without shards, moves or messages"])

    def test_a_search_takes_slices_and_pairs(self):
        made, proof = self.folder / "made.json", self.folder / "proof.json"
        for name, *options in (("seq1f1b", "--slices", 2), ("terapipe", "--slices", 2), ("svpp", "--slices", 2, "-v", 2),
                               ("slimpipe", "--slices", 4, "-v", 2), ("dualpipe",), ("dualpipev",)):
            costs = ["--costs", "f=10,i=11,w=9,c=1"] if name.startswith("dualpipe") else ["--costs", "f=10,b=20,c=1"]
            question = [name, "-p", 4, "-m", 8, *options]
            own = self.json("simulate", "--schedule", *question, *costs)
            found = self.json("schedule", "search", *question, *costs, "--effort", "2M", "--objective", "makespan", "-o", made,
                              "--certificate", proof)
            self.assertLessEqual(found["makespan_s"], own["makespan_s"], name)
            self.assertGreaterEqual(found["makespan_s"], found["makespan_bound_s"], name)
            self.assertEqual(self.json("schedule", "check", made, "--certificate", proof)["certificate_faults"], [], name)

    def test_a_search_keeps_pairs_of_a_forward_and_a_backward_and_says_that_others_come_apart(self):
        plan = self.folder / "plan.json"
        for schedule, comes_apart in (("stp", True), ("dualpipev", False)):
            self.done("plan", "llama-3-8b", "h100:16", "--global-batch", 32, "--layout",
                      f"pp=4,tp=4,mbs=1,schedule={schedule}", "-o", plan)
            result = plumb("schedule", "search", plan, "--objective", "makespan", "--effort", "1M")
            self.assertEqual("come apart in a search" in result.stderr, comes_apart, result.stderr)
            self.assertEqual("without other pairs than of a forward and a backward" in result.stdout, comes_apart)
        result = plumb("schedule", "search", "dualpipev", "-p", 4, "-m", 8, "--effort", "1M")  # a pair lasts as long as both
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_search_is_proved_and_its_certificate_verified(self):
        made, proof = self.folder / "made.json", self.folder / "proof.json"
        costs = ["--costs", "f=67,i=81,w=125,c=20,unit=ps"]
        found = self.json("schedule", "search", "zb-auto", "-p", 8, "-m", 13, *costs, "-o", made, "--certificate", proof)
        self.assertTrue(found["proved_optimal"])
        self.assertAlmostEqual(found["span_s"], 4396e-12, places=20)  # ZB-H1's; list scheduling alone finds 4422
        self.assertEqual(found["bound_reason"], "the work of rank 0")
        self.assertAlmostEqual(sum(term["time_s"] for term in found["bound_terms"]), found["span_bound_s"], places=20)
        self.assertEqual(self.json("schedule", "check", made, "--certificate", proof)["certificate_faults"], [])
        text = self.done("schedule", "search", "zb-auto", "-p", 8, "-m", 13, *costs)
        self.assertIn("proved optimal", text)
        self.assertIn("of idling on rank 0", text)
        proof.write_text(proof.read_text().replace("4396", "4395"))
        self.assertEqual(len(json.loads(plumb("schedule", "check", made, "--certificate", proof, "--json").stdout)["certificate_faults"]), 2)

    def test_a_search_has_an_objective_a_memory_by_rank_and_hops_by_link(self):
        question = ["-p", 6, "-m", 10, "--memory", 2, "--costs", "f=65,i=106,w=74,unit=ps"]
        found = self.json("schedule", "search", "zb-auto", *question, "--objective", "makespan")
        self.assertLessEqual(found["makespan_s"], 2816.5e-12)  # ZB-H2's
        self.assertIsNone(found["span_bound_s"])
        self.assertGreaterEqual(found["makespan_s"], found["makespan_bound_s"])
        tight = self.json("schedule", "search", "1f1b", "-p", 3, "-m", 6, "--max-activations", "2:1:1", "--costs",
                          "f=1,b=2,c=0.5:0.25")
        self.assertEqual(tight["peak_activations"], 2)
        self.refused(3, "schedule", "search", "v-half", "-p", 2, "-m", 2, "--max-activations", "1", says=["memory"])
        self.refused(2, "schedule", "search", "1f1b", "-p", 3, "-m", 6, "--max-activations", "2:1", says=["2 numbers"])

    def test_a_search_without_a_schedule_chooses_the_placement(self):
        question = ["-p", 4, "-m", 8, "-v", 2, "--costs", "f=10,i=10,w=10", "--effort", "2M"]
        any_order = self.json("schedule", "search", *question)
        self.assertEqual(any_order["schedule"], "v")
        self.assertLess(any_order["span_s"], self.json("schedule", "search", *question, "--placement", "chain")["span_s"])
        both = self.json("schedule", "search", *question, "--placement", "bidirectional")
        self.assertEqual(both["schedule"], "bidirectional")
        self.assertEqual(self.done("schedule", "search", *question), self.done("schedule", "search", *question))
        self.refused(2, "schedule", "search", "zb-v", "-p", 4, "-m", 8, "--placement", "v", says=["its own placement"])
        self.refused(2, "schedule", "search", "-p", 4, says=["-m"])
        self.refused(2, "schedule", "search", *question, "--slices", 2, says=["--slices"])

    def test_a_search_takes_a_plan_with_its_costs_and_memory(self):
        plan, made = self.folder / "plan.json", self.folder / "made.json"
        self.done("plan", "gpt-nano", "h100:4", "--global-batch", 16, "--layout", "pp=4,mbs=1,schedule=1f1b", "-o", plan)
        found = self.json("schedule", "search", plan, "--objective", "makespan", "--effort", "1M", "-o", made)
        self.assertEqual(found["schedule"], "1f1b")
        self.assertGreaterEqual(found["makespan_s"], found["makespan_bound_s"])
        self.done("schedule", "check", made)
        self.refused(2, "schedule", "search", plan, "--costs", "f=1", says=["its own costs"])
        self.refused(2, "schedule", "search", plan, "-m", 4, says=["its own ranks"])

    def test_a_curve_holds_time_against_memory_and_each_schedule_against_the_best_found(self):
        question = ["schedule", "search", "-p", 4, "-m", 8, "-v", 2, "--costs", "f=10,i=10,w=10", "--effort", "1M", "--curve"]
        picture = self.folder / "curve.svg"
        curve = self.json(*question, "--svg", picture)
        times = [point["time_s"] for point in curve["points"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertTrue(all(point["bound_s"] <= point["time_s"] for point in curve["points"]))
        self.assertTrue(all(each["best_found_s"] <= each["time_s"] for each in curve["schedules"]))
        names = [(each["name"], each["placement"]) for each in curve["schedules"]]
        self.assertEqual(len(names), len(set(names)))
        by_name = {each["name"]: each for each in curve["schedules"]}
        self.assertEqual(by_name["1f1b"]["time_s"], 660)  # (m+p-1)(F+B) of a rank's whole share
        self.assertEqual(by_name["1f1b"]["activations"], 8)  # 4 micro-batches of two parts each
        self.assertGreater(by_name["1f1b"]["robustness"]["noise_ratio"], 1)
        self.assertIn(">1f1b (chain), hanayo (chain), hanayo (v)<", picture.read_text())  # one place on the chart
        found, bound = re.findall('<path d="([^"]*)"', picture.read_text())[:2]
        self.assertEqual((found.count("M"), bound.count("M")), (1, 1))  # neither line has a gap
        text = self.done(*question)
        self.assertIn("loses", text)
        self.assertEqual(text, self.done(*question))
        self.refused(2, *question, "-o", self.folder / "x.txt", says=["--curve"])
        self.refused(2, *question[:-1], "--svg", picture, says=["--curve"])

    def test_a_search_reads_a_file_of_costs_with_memory_in_bytes(self):
        part = {"forward_s": 1e-3, "input_grad_s": 1e-3, "weight_grad_s": 1e-3, "activation_bytes": 1000,
                "released_at_input_grad_bytes": 250, "message_bytes": 4000}
        document = {"parts": [part] * 4, "head": {**part, "message_bytes": 0}, "links": [{"latency_s": 1e-5, "bandwidth_gb_per_s": 1}]}
        costs, made, proof = self.folder / "costs.json", self.folder / "made.json", self.folder / "proof.json"
        costs.write_text(json.dumps(document))
        found = self.json("schedule", "search", "1f1b", "-p", 4, "-m", 8, "--costs", costs, "-o", made, "--certificate", proof)
        self.assertGreaterEqual(found["span_s"], found["span_bound_s"])
        self.assertEqual(json.loads(proof.read_text())["memory"]["max_bytes"], [4000, 3000, 2000, 2000])
        self.assertEqual(json.loads(proof.read_text())["costs_ps"]["hop"][0], 14_000_000)  # 10 us and 4000 B at 1 GB/s
        self.assertEqual(json.loads(proof.read_text())["costs_ps"]["gradient_hop"][0], 14_000_000)
        self.assertEqual(self.json("schedule", "check", made, "--certificate", proof)["certificate_faults"], [])
        costs.write_text(json.dumps({**document, "max_activation_bytes": [6500]}))
        self.done("schedule", "search", "-p", 2, "-m", 8, "-v", 2, "--placement", "chain", "--costs", costs, "--effort", "1M",
                  "--certificate", proof)
        memory = json.loads(proof.read_text())["memory"]
        self.assertEqual((memory["activation_bytes"], memory["max_bytes"]), ([2000, 3000], [6500, 6500]))  # parts are joined
        curve = self.json("schedule", "search", "-p", 2, "-m", 8, "-v", 2, "--costs", costs, "--effort", "1M", "--curve")
        self.assertIn("memory_gib", curve["points"][0])
        self.refused(2, "schedule", "search", "1f1b", "-p", 4, "-m", 8, "--costs", costs, "--max-activations", 2, says=["own memory"])
        costs.write_text(json.dumps({**document, "part": []}))
        self.refused(1, "schedule", "search", "1f1b", "-p", 4, "-m", 8, "--costs", costs, says=["costs.json", "part"])

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


if __name__ == "__main__":
    run_cases()

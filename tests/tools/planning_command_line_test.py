#!/usr/bin/env python3
"""Checks models, clusters and plans on the command line.

usage: planning_command_line_test.py PLUMB
"""
import json
import re

from command_line import CommandLineTest, plumb, run_cases


class Defaults(CommandLineTest):
    def test_without_a_stack_one_is_assumed_and_every_answer_says_so(self):
        plan = self.folder / "plan.json"
        text = self.done("plan", "llama-3-8b", "h100:16", "--global-batch", 64, "--layout", "tp=2,pp=2", "-o", plan)
        self.assertIn("stack nemo, assumed: a device with fp8", text)
        self.assertRegex(text, "four of five runs lie within .* a step and .* of memory; the framework is assumed")
        written = json.loads(plan.read_text())
        self.assertEqual(written["training"]["stack"]["name"], "nemo")
        low, high = written["prediction"]["step_time_interval_s"]
        self.assertTrue(low < written["prediction"]["step_time_s"] < high)
        for verb in ("simulate", "memory"):
            answer = self.json(verb, plan)
            self.assertEqual((answer["stack"], answer["framework_known"]), ("nemo", "assumed"))
            self.assertEqual(answer["step_time_interval_s"], [low, high])
        named = self.json("simulate", "llama-3-8b", "h100:16", "--global-batch", 64, "--layout",
                          "tp=2,pp=2,zero=1,sp=1,mbs=1", "--stack", "nemo")
        self.assertEqual((named["stack_assumed"], named["framework_known"]), (None, "named"))
        own = self.json("simulate", "llama-3-8b", "h100:16", "--global-batch", 64, "--layout", "tp=2,pp=2",
                        "--stack", "plumb")
        self.assertEqual((own["stack"], own["framework_known"]), (None, "unknown"))

    def test_the_best_layouts_order_is_searched_for_its_own_costs_and_goes_into_the_plan(self):
        plan, rows = self.folder / "plan.json", self.folder / "rows.csv"
        question = ("plan", "gpt-nano", "h100:2", "--stack", "plumb", "--global-batch", 8, "--layout", "pp=2,mbs=1,schedule=1f1b")
        self.assertIsNone(self.json(*question)["searched_order"])
        searched = self.json(*question, "--schedule", "search", "-o", plan)["searched_order"]
        self.assertTrue(searched["is_quicker"])  # split backwards leave a smaller bubble
        self.assertLess(searched["step_time_s"], searched["step_time_before_s"])
        self.assertGreaterEqual(searched["compute_makespan_s"], searched["compute_makespan_bound_s"])
        self.assertIn("1f1b-searched", json.loads(plan.read_text())["schedule"]["name"])
        self.assertAlmostEqual(self.json("simulate", plan)["step_time_s"], searched["step_time_s"], places=12)
        self.assertIn("searched for its own costs", self.done(*question, "--schedule", "search"))
        self.done("export", plan, "--to", "torch-csv", "-o", rows)
        self.done("schedule", "check", rows)
        self.assertEqual(len(self.json("run", plan, "--backend", "cpu", "--steps", 1)["losses"]), 1)
        self.refused(2, *question, "--schedule", "1f1b", says=["search"])

    def test_a_search_keeps_headroom_unless_told_otherwise(self):
        question = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128)
        kept, none = self.done(*question), self.done(*question, "--headroom", 0)
        self.assertIn("3 % of a peak of memory stays free", kept)
        self.assertNotIn("stays free", none)
        tight = self.json(*question, "--headroom", 0.9)["best"]["prediction"]["peak_memory_bytes"]
        self.assertLess(1.9 * max(tight), 80 * 2**30)

    def test_the_best_is_the_best_on_shared_links_however_many_are_listed(self):
        for question in (("llama-2-13b", "l40s:32", "--global-batch", 256, "--stack", "torchtitan"),
                         ("deepseek-v2", "h100:256", "--global-batch", 1024, "--stack", "nemo-moe")):
            answers = [self.json("plan", *question, "--top", top) for top in (1, 2, 5)]
            for answer in answers:
                self.assertEqual(answer["best"]["layout"], answers[0]["best"]["layout"])
                times = [row["prediction"]["step_time_s"] for row in answer["ranked"]]
                self.assertEqual(times, sorted(times))
        plan = self.folder / "plan.json"
        self.done("plan", "llama-2-13b", "l40s:32", "--global-batch", 256, "--stack", "torchtitan", "-o", plan)
        row, = self.json("whatif", plan, "--vary", "training.global_batch=256", "--replan")["rows"]
        self.assertEqual(row["prediction"]["step_time_s"],
                         json.loads(plan.read_text())["prediction"]["step_time_s"])

    def test_a_framework_is_offered_what_it_runs_and_asked_layouts_get_a_note(self):
        question = ("megatron-1t", "a100:3072", "--global-batch", 3072, "--stack", "megatron-lm-2021")
        best = self.json("plan", *question, "--top", 1)["best"]["layout"]
        self.assertEqual(best["zero"], 0)
        self.assertLessEqual(best["tp"], 8)
        for verb in ("plan", "simulate"):
            asked = plumb(verb, "llama-2-7b", "a100:64", "--global-batch", 256, "--stack", "megatron-lm-2021", "--layout",
                          "tp=1,pp=1,zero=3,mbs=1,recompute=full")
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertIn("stack megatron-lm-2021 has no ZeRO 3: give zero=0; what is predicted is how it would run",
                          asked.stderr)

    def test_keys_have_lists_and_bounds_on_the_command_line_or_in_a_file(self):
        question = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128)
        pins = self.folder / "pins.json"
        pins.write_text(json.dumps({"tp": [4, 2], "pp": "2..4", "zero": 1}))
        asked = self.json(*question, "--layout", "tp=2|4,pp=2..4,zero=1")
        for row in asked["ranked"]:
            self.assertIn(row["layout"]["tp"], (2, 4))
            self.assertIn(row["layout"]["pp"], (2, 4))
            self.assertEqual(row["layout"]["zero"], 1)
        self.assertEqual(asked, self.json(*question, "--layout", "zero=1,pp=2..4,tp=4|2"))
        self.assertEqual(asked, self.json(*question, "--layout", pins))
        self.assertEqual(self.json(*question, "--layout", f"{pins},mbs=1"),
                         self.json(*question, "--layout", "tp=2|4,pp=2..4,zero=1,mbs=1"))

    def test_keys_without_a_layout_are_answered_in_a_sentence(self):
        question = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "--layout")
        for pins, code, part in (("pp=8..4", 2, "write the smaller one first"),
                                 ("pp=..", 2, "there is no bound"),
                                 ("tp=2,tp=4", 2, "the key is given twice"),
                                 ("recompute=none..full", 2, "list the values"),
                                 ("pp=5..7", 3, "give another value of, or leave out, pp=5..7"),
                                 ("dp=3", 3, "leave out, dp=3"),
                                 ("tp=3|5", 3, "leave out, tp=3|5"),
                                 ("dp=4,tp=2,pp=4", 3, "let the product be 16")):
            with self.subTest(pins):
                answer = plumb(*question, pins)
                self.assertEqual(answer.returncode, code, answer.stderr)
                self.assertIn(part, answer.stderr)
                self.assertEqual(len(answer.stderr.strip().splitlines()), 1)
        file = self.folder / "pins.json"
        file.write_text('{"tp": 2}')
        twice = plumb(*question, f"{file},tp=4")
        self.assertEqual((twice.returncode, "given twice" in twice.stderr), (2, True))
        one = plumb("partition", "resnet-50", "h100:4", "--layout", "pp=2|4")
        self.assertEqual((one.returncode, "give each key one value" in one.stderr), (2, True))

    def test_a_search_that_is_stopped_repeats_and_says_how_far_it_may_be_from_the_best(self):
        question = ("plan", "gpt3-175b", "a100:512", "--global-batch", 512)
        best = self.json(*question)["best"]["prediction"]["step_time_s"]
        for effort in (1, 100, 500):
            with self.subTest(effort):
                answer = self.json(*question, "--effort", effort)
                for threads in (1, 2, 5):
                    self.assertEqual(answer, self.json(*question, "--effort", effort, "--threads", threads))
                self.assertEqual(answer["stopped"]["evaluations"], effort)
                self.assertLessEqual(answer["stopped"]["no_step_below_s"], best)
                self.assertGreaterEqual(answer["best"]["prediction"]["step_time_s"], best)
        self.assertIsNone(self.json(*question, "--effort", 100000)["stopped"])
        text = self.done(*question, "--time-limit", 0.001)
        evaluations = int(re.search(r"stopped behind (\d+) evaluations", text).group(1))
        self.assertLess(evaluations, 1000)

    def test_explain_is_a_page_by_key_and_opens_a_family(self):
        question = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128)
        page = self.done(*question, "--explain")
        self.assertLess(len(page.splitlines()), 100)
        self.assertRegex(page, r"tp=4 +[\d.]+ s +[\d.]+ % +[A-Za-z -]+ [\d.]+ m?s +TP4 SP DP4 ")
        self.assertRegex(page, "stack nemo has no ZeRO 2: give zero=0 or 1")
        other = self.done("plan", "qwen3-8b", "h100:16", "--global-batch", 128, "--explain")
        self.assertRegex(other, r"no difference: schedule=interleaved \(DP16 ")  # without a pipeline
        self.assertNotRegex(page, r" 0\.0 %  ")
        others = self.json(*question, "--explain")["other_values"]
        self.assertTrue(all(other["step_time_s"] or other["missing_bytes"] for other in others))
        family = self.done(*question, "--explain", "tp=2,pp=2,mbs=1")
        for line in family.split("the other layouts:\n")[1].split("\n\n")[0].splitlines():
            self.assertIn("tp=2,pp=2", line)
            self.assertRegex(line, "it takes|lacks")
        self.refused(2, *question, "--explain", "family", says=["KEY=VALUE"])

    def test_fp8_that_is_slower_than_bf16_says_why(self):
        question = ("simulate", "qwen3-30b-a3b", "h100:16", "--global-batch", 256, "--layout", "ep=8,mbs=1")
        said = plumb(*question, "--precision", "fp8")
        self.assertRegex(said.stderr, "fp8 is .* % slower than bf16 in this layout .*: the products of its experts")

    def test_a_recipe_of_fp8_is_the_stacks_and_is_named(self):
        question = ("simulate", "llama-3-8b", "h100:8", "--global-batch", 64, "--layout", "tp=2,zero=3,mbs=1",
                    "--stack", "torchtitan")
        whole = self.json(*question, "--precision", "fp8")
        rows = self.json(*question, "--precision", "fp8", "--fp8-recipe", "rowwise")
        self.assertGreater(rows["step_time_s"], whole["step_time_s"])
        self.assertIn("stack torchtitan (rowwise)", self.done(*question, "--precision", "fp8", "--fp8-recipe", "rowwise"))
        self.refused(2, *question, "--precision", "fp8", "--fp8-recipe", "blockwise",
                     says=("give mxfp8, rowwise, tensorwise",))
        self.refused(2, *question, "--fp8-recipe", "rowwise", says=("give --precision fp8",))

    def test_groups_of_replicas_share_state_where_that_is_asked_for(self):
        question = ("simulate", "llama-2-7b", "a100:128", "--global-batch", 256, "--stack", "fsdp", "--layout")
        whole = self.json(*question, "zero=3,mbs=2,recompute=none")
        nodes = self.json(*question, "zero=3,shard=8,mbs=2,recompute=none")
        self.assertGreater(nodes["peak_memory_bytes"][0], whole["peak_memory_bytes"][0])
        self.refused(3, *question, "zero=3,shard=7,mbs=2", says=("shard=7 does not divide the 128 replicas",))
        plan = self.folder / "plan.json"
        self.done("plan", *question[1:], "zero=3,shard=8,mbs=2,recompute=none", "-o", plan)
        self.assertEqual(self.json("simulate", plan)["step_time_s"], nodes["step_time_s"])

    def test_memory_says_what_the_frameworks_allocator_reserves(self):
        plan = self.folder / "plan.json"
        self.done("plan", "llama-3-8b", "h100:16", "--global-batch", 64, "--layout", "tp=2,pp=2", "-o", plan)
        for rank in self.json("memory", plan)["ranks"]:
            for share in rank["reserved_by_allocator"].values():
                self.assertTrue(1 <= share < 1.2)
        self.assertIn("PyTorch's allocator, played in this order, reserves", self.done("memory", plan))

    def test_racks_are_filled_alike_and_clouds_have_names_of_their_own(self):
        rack = self.json("simulate", "llama-3-8b", "gb200-nvl72:256", "--global-batch", 256, "--layout", "dp=256")
        self.assertIn("gb200-nvl72:256", rack["title"])
        for cluster, rate, nics in (("a100", 25, None), ("p4de", 12.5, 4)):
            network = self.json("clusters", cluster)["network"]
            self.assertEqual(network["bandwidth_gb_per_s"]["value"], rate)
            self.assertEqual(network.get("nics_per_node", {}).get("value"), nics)


class Sites(CommandLineTest):
    """Devices of several kinds, or in several places."""
    QUESTION = ("--global-batch", 64, "--layout", "schedule=1f1b,mbs=1,v=1")

    def test_a_plan_over_two_kinds_of_devices_is_simulated_exported_and_gives_the_faster_more_layers(self):
        path = self.folder / "plan.json"
        answer = self.done("plan", "llama-3-8b", "h100:8+a100:8@50/100", *self.QUESTION, "-o", path)
        self.assertIn("8 x H100-SXM + 8 x A100", answer)
        plan = json.loads(path.read_text())
        ranks = plan["layout"]["pp"]
        split = plan["layout"]["split"]
        self.assertGreater(sum(split[:ranks // 2]), sum(split[ranks // 2:]))
        self.assertEqual(plan["cluster"]["between_sites"]["bandwidth_gb_per_s"], 50)
        simulated = self.json("simulate", path)
        self.assertEqual(simulated["step_time_s"], plan["prediction"]["step_time_s"])
        self.assertEqual(len(self.json("memory", path)["ranks"]), ranks)
        self.assertIn("ranks must be numbered over the sites", plumb("export", path, "--to", "megatron").stderr)

    def test_money_counts_the_devices_of_all_sites(self):
        answer = self.json("plan", "llama-3-8b", "h100:8+a100:8", *self.QUESTION, "--objective", "cost", "--price", 3)
        per_usd = answer["ranked"][0]["goal"]["tokens_per_usd"]
        step = answer["ranked"][0]["prediction"]["step_time_s"]
        self.assertAlmostEqual(per_usd, 64 * 8192 / (16 * 3 * step / 3600), delta=1e-6 * per_usd)

    def test_sites_that_cannot_be_joined_or_laid_out_are_refused(self):
        def asked(cluster, layout="schedule=1f1b"):
            return ("plan", "gpt2", cluster, "--global-batch", 64, "--layout", layout)

        self.refused(2, *asked("h100:8+a100:8@fast"), says=["@10/5000"])
        self.refused(2, *asked("a100:4+h100:8"), says=["put it first"])
        self.refused(1, *asked("h100:8+nowhere:8"), says=["no cluster preset", "nowhere"])
        self.refused(3, *asked("h100:8+a100:8", "pp=1"), says=["two sites", "divides 8"])
        self.refused(1, "simulate", "gpt2", "h100:8+a100:8", "--global-batch", 64, "--layout", "dp=8,pp=2", "--slow", "rank=0:0.5",
                     says=["one site"])


class Objectives(CommandLineTest):
    """What `plan` makes best besides the step's time."""
    QUESTION = ("plan", "llama-3-8b", "h100:32", "--global-batch", 64, "--seq", 2048, "--layout", "mbs=1")
    TOKENS = 64 * 2048

    def test_money_counts_devices_and_their_price(self):
        answer = self.json(*self.QUESTION, "--objective", "cost", "--price", 3)
        per_usd = [row["goal"]["tokens_per_usd"] for row in answer["ranked"]]
        self.assertEqual(per_usd, sorted(per_usd, reverse=True))
        for row in answer["ranked"]:
            step = row["prediction"]["step_time_s"]
            usd = row["setting"]["devices"] * 3 / 3600 * step
            self.assertAlmostEqual(row["goal"]["tokens_per_usd"], self.TOKENS / usd, delta=1e-9 * self.TOKENS / usd)
        chosen = answer["best"]["setting"]["devices"]
        alone = {count: self.json(*self.QUESTION, "--objective", "cost", "--price", 3, "--devices", count)["best"]
                 for count in (chosen, 8, 32)}
        self.assertEqual(alone[chosen]["goal"], answer["best"]["goal"])
        self.assertTrue(all(one["goal"]["tokens_per_usd"] <= per_usd[0] for one in alone.values()))
        text = self.done(*self.QUESTION, "--objective", "cost")
        self.assertRegex(text, "devices +layout +tokens/[$]")

    def test_energy_follows_the_powers_of_the_device(self):
        sixteen = (*self.QUESTION[:-1], "pp=2,mbs=1", "--devices", 16, "--objective", "energy", "--pue", 1)
        always = self.json(*sixteen, "--power", "700:700")["best"]
        joules = 16 * 700 * always["prediction"]["step_time_s"]
        self.assertAlmostEqual(always["goal"]["tokens_per_joule"] / (self.TOKENS / joules), 1, places=9)
        self.assertGreater(self.json(*sixteen, "--power", "70:700")["best"]["goal"]["tokens_per_joule"],
                           always["goal"]["tokens_per_joule"])
        self.refused(2, *sixteen, "--power", "700:70", says=["--power", "100:700"])

    def test_a_deadline_takes_the_fewest_devices_that_meet_it(self):
        front = self.json(*self.QUESTION, "--front", "devices")["ranked"]
        self.assertGreater(len(front), 2)
        goal = front[-2]
        days = goal["prediction"]["step_time_s"] * 1e12 / self.TOKENS / 86400 * 1.0001
        best = self.json(*self.QUESTION, "--objective", "devices", "--tokens", 1e12, "--deadline", days)["best"]
        self.assertEqual(best["layout"], goal["layout"])
        self.assertEqual(best["setting"]["devices"], goal["setting"]["devices"])
        self.refused(3, *self.QUESTION, "--objective", "devices", "--tokens", 1e12, "--deadline", 0.001,
                     says=["32 devices", "deadline"])
        self.refused(2, *self.QUESTION, "--objective", "devices", "--tokens", 1e12, says=["--deadline"])

    def test_fronts_get_slower_as_they_take_less(self):
        memory = self.json(*self.QUESTION, "--front", "memory")["ranked"]
        times = [row["prediction"]["step_time_s"] for row in memory]
        peaks = [max(row["prediction"]["peak_memory_bytes"]) for row in memory]
        self.assertGreater(len(memory), 5)
        self.assertEqual((times, peaks), (sorted(times), sorted(peaks, reverse=True)))
        self.assertEqual(times[0], self.json(*self.QUESTION)["best"]["prediction"]["step_time_s"])
        devices = self.json(*self.QUESTION, "--front", "devices")["ranked"]
        counts = [row["setting"]["devices"] for row in devices]
        times = [row["prediction"]["step_time_s"] for row in devices]
        self.assertEqual((counts, times), (sorted(counts, reverse=True), sorted(times)))

    def test_a_robust_layout_has_the_p95_that_simulating_it_shows(self):
        question = ("plan", "gpt-micro", "h100:4", "--global-batch", 16, "--layout", "mbs=1,zero=0")
        noise = ("--noise", "cv=0.2,runs=200")
        plan = self.folder / "robust.json"
        best = self.json(*question, "--objective", "robust", *noise, "-o", plan)["best"]
        self.assertGreater(best["goal"]["step_time_p95_s"], best["prediction"]["step_time_s"])
        shown = self.json("simulate", plan, *noise)["noise"]
        self.assertEqual(shown["p95_step_time_s"], best["goal"]["step_time_p95_s"])
        self.refused(2, *question, "--objective", "robust", says=["--noise"])

    def test_lists_of_precisions_optimizers_and_clusters_are_searched_whole(self):
        question = ("plan", "llama-3-8b", "--global-batch", 64, "--seq", 2048, "--layout", "mbs=1", "--stack", "nemo")
        best = self.json(*question[:2], "a100:16|h100:16", *question[2:], "--precision", "bf16", "--optimizer",
                         "adamw|lion")
        alone = [self.json(*question[:2], cluster, *question[2:], "--optimizer", optimizer)["best"]
                 for cluster in ("a100:16", "h100:16") for optimizer in ("adamw", "lion")]
        times = [one["prediction"]["step_time_s"] for one in alone]
        self.assertEqual(best["best"]["prediction"]["step_time_s"], min(times))
        self.assertEqual(best["best"]["setting"]["cluster"], "h100")
        text = self.done(*question[:2], "h100:16", *question[2:], "--precision", "bf16|fp8", "--top", 20)
        self.assertRegex(text, "precision +layout")
        self.refused(2, *question[:2], "h100:16|a100:16", *question[2:], "--explain", says=["--explain"])
        self.refused(2, *question[:2], "h100:16", *question[2:], "--price", 2, says=["--objective cost"])


class Advice(CommandLineTest):
    def test_the_fewest_pins_to_free_are_named_where_nothing_fits(self):
        self.refused(3, "plan", "llama-3-8b", "h100:8", "--global-batch", 64, "--stack", "torchtitan",
                     "--layout", "tp=1,dp=8,mbs=8",
                     says=["no layout fits", "without dp=8 it fits as", "without mbs=8 it fits as"])

    def test_a_layout_of_megatrons_is_a_split_and_is_written(self):
        question = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "--layout", "pp=2")
        best = self.json(*question, "--split", "Et*17|t*15L")["best"]
        self.assertEqual((best["layout"]["split"], best["pipeline_model_parallel_layout"]), ([17, 15], "Et*17|t*15L"))
        self.refused(2, *question, "--split", "Et*17m|t*15L", says=["multi-token prediction"])


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

    def test_what_models_clusters_and_stacks_print_is_read_back_as_the_same(self):
        for kind in ("models", "clusters", "stacks"):
            for entry in self.json(kind)[kind]:
                for form in ((), ("--json",)):
                    with self.subTest(kind=kind, name=entry["name"], form=form):
                        printed = self.done(kind, entry["name"], *form)
                        path = self.write("printed.json", printed)
                        self.assertEqual(self.done(kind, path, *form), printed)

    def test_a_figure_that_does_not_follow_from_the_sizes_is_refused(self):
        for name in ("gpt2", "vgg-11"):
            shown = self.json("models", name)
            path = self.write("model.json", json.dumps({**shown, "parameters": shown["parameters"] + 1}))
            self.refused(1, "models", path, says=[path, "parameters", "follows from the sizes", "leave the key out"])

    def test_an_exact_name_wins_and_what_may_be_two_is_refused_with_both(self):
        for kind in ("models", "clusters", "stacks"):
            for entry in self.json(kind)[kind]:
                self.assertEqual(self.json(kind, entry["name"])["name"], entry["name"])
        self.assertEqual(self.json("models", "GPT3-13B")["name"], "gpt3-13b")
        self.refused(1, "models", "gpt313b", says=["gpt3-1.3b", "gpt3-13b", "name one"])

    def test_labels_are_not_varied_and_keys_without_effect_are_said(self):
        plan = self.llama_plan()
        for key in ("model.name=gpt2", "cluster.name=b200", "name=x", "model.source=x", "cluster.device.name=B200"):
            self.refused(2, "whatif", plan, "--vary", key, says=["vary", "label", "plumb plan"])
        self.assertIn("model.sequence changes nothing", plumb("whatif", plan, "--vary", "model.sequence=1024,2048").stderr)
        self.assertNotIn("changes nothing", plumb("whatif", plan, "--vary", "network.bandwidth_gb_per_s=10,50").stderr)

    def test_an_offloaded_optimizer_that_was_not_asked_for_is_said_first(self):
        question = ("llama-3-70b", "h100:8", "--global-batch", 8, "--seq", 4096)
        for verb in ("plan", "simulate"):
            first = self.done(verb, *question).splitlines()[0]
            self.assertIn("the optimizer's state waits in the hosts' memory", first)
            asked = self.done(verb, *question, "--layout", "offload=optimizer").splitlines()[0]
            self.assertNotIn("waits in the hosts", asked)

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
        self.assertEqual(plumb("models", f"{self.folder}/").stdout.replace(f"{self.folder}/config.json", ""),
                         result.stdout.replace(f"{self.folder}/config.json", ""))  # its folder is the same model
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused(1, "models", empty, says=["a folder without a config.json"])

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
        self.refused(2, *asked, "offload=nvme", says=["optimizer+activations"])
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

    def test_what_if_says_once_why_rows_are_infeasible(self):
        question = ("whatif", self.llama_plan(), "--vary", "device.memory_gib=40,160", "--vary", "global_batch=64,128")
        head, reason = self.done(*question).rstrip().rsplit("\n\n", 1)
        self.assertRegex(reason, r"^infeasible with .*memory_gib=40, .*global_batch=64 and 1 other row: rank 0 lacks [^\n]*$")
        self.assertNotIn("infeasible", head)
        full = [row["infeasible"] for row in self.json(*question)["rows"]]
        self.assertTrue(full[0].endswith(reason.split(": ", 1)[1]))
        self.assertEqual([row is None for row in full], [False, False, True, True])

    def test_what_if_and_memory_take_a_model_on_a_cluster_as_simulate_does(self):
        question = ("llama-3-8b", "h100:16", "--global-batch", 128, "--layout", "dp=4,tp=2,pp=2,mbs=1")
        simulated = self.json("simulate", *question)
        row = self.json("whatif", *question, "--vary", "global_batch=128")["rows"][0]
        self.assertEqual(row["prediction"]["step_time_s"], simulated["step_time_s"])
        ranks = self.json("memory", *question)["ranks"]
        self.assertEqual([rank["peak_bytes"] for rank in ranks], simulated["peak_memory_bytes"])
        for verb, more in (("whatif", ("--vary", "global_batch=64")), ("memory", ())):
            self.refused(2, verb, self.llama_plan(), "--seq", 512, *more, says=["in the plan already"])
            self.refused(3, verb, "llama-3.1-405b", "h100:8", "--global-batch", 8, *more)

    def test_an_order_of_ranks_that_is_none_is_refused_with_those_that_are(self):
        layout = ("simulate", "llama-3-8b", "h100:16", "--global-batch", 128, "--stack", "nemo", "--layout")
        self.refused(2, *layout, "dp=4,pp=4,order=pp-dp", says=["tp-cp-dp-pp or tp-cp-pp-dp"])

    def test_presets_vary_as_a_whole(self):
        rows = self.json("whatif", self.llama_plan(), "--vary", "gpus=16,32", "--vary", "cluster=h100,a100", "--vary",
                         "model=llama-3-8b,qwen3-8b", "--replan")["rows"]
        self.assertEqual(len(rows), 8)
        self.assertEqual(rows[2]["values"], {"cluster.devices": 16, "cluster": "a100", "model": "llama-3-8b"})
        planned = self.json("plan", "qwen3-8b", "a100:32", "--global-batch", 128, "--seq", 8192)["best"]
        self.assertEqual(rows[7]["prediction"]["step_time_s"], planned["prediction"]["step_time_s"])
        named = self.json("whatif", self.llama_plan(), "--vary", "stack=nemo,plumb", "--replan")["rows"]
        self.assertEqual([row["stack"] for row in named], ["nemo", None])
        self.assertEqual((rows[0]["stack"], rows[2]["stack"]), ("nemo", "megatron-core"))  # a100 has no fp8
        self.assertNotEqual(named[0]["prediction"]["step_time_s"], named[1]["prediction"]["step_time_s"])
        self.refused(1, "whatif", self.llama_plan(), "--vary", "cluster=h10O", says=["h100"])

    def test_a_resource_that_does_not_bind_is_named(self):
        said = plumb("whatif", self.llama_plan(), "--vary", "network.bandwidth_gb_per_s=5,50,1e5,1e6").stderr
        self.assertRegex(said, r"network.bandwidth_gb_per_s does not bind from \d+ on")
        self.assertIn("does not bind", plumb("whatif", self.llama_plan(), "--vary", "device.memory_gib=80,160").stderr)

    def test_a_chart_has_both_axes_and_a_line_for_each_combination(self):
        svg = self.folder / "chart.svg"
        self.done("whatif", self.llama_plan(), "--vary", "global_batch=64,128", "--vary",
                  "network.bandwidth_gb_per_s=10,50,100", "--svg", svg)
        drawn = svg.read_text()
        for text in (">step time, s<", ">cluster.network.bandwidth_gb_per_s<", ">training.global_batch=64<", ">100<"):
            self.assertIn(text, drawn)
        self.assertEqual(drawn.count("<circle"), 6)

    def test_a_break_even_is_where_two_plans_change_places(self):
        question = ("llama-3-8b", "h100:16", "--global-batch", 128, "--replan", "--vary", "layout.pp=1,4")
        found = self.json("whatif", *question, "--break-even", "network.bandwidth_gb_per_s=0.05..100.0")
        self.assertEqual((found["key"], found["vary"]), ("network.bandwidth_gb_per_s", "layout.pp"))
        for crossing in found["crossings"]:
            for value, fastest in ((crossing["value"], "faster_above"), (0.99 * crossing["value"], "faster_below")):
                rows = self.json("whatif", *question, "--vary", f"network.bandwidth_gb_per_s={value}")["rows"]
                best = min(rows, key=lambda row: row["prediction"]["step_time_s"])
                self.assertEqual(best["values"]["layout.pp"], crossing[fastest])
            self.assertLess(crossing["below"], crossing["value"])
        self.assertTrue(found["crossings"])
        self.assertEqual(found["compared"], 9)
        self.assertIn("is faster than", self.done("whatif", *question, "--break-even", "network.bandwidth_gb_per_s=50..100"))
        self.refused(2, "whatif", *question, "--break-even", "bandwidth", says=["KEY=LOW..HIGH"])
        self.refused(2, "whatif", self.llama_plan(), "--vary", "pp=1,2,4", "--break-even", "seq=512..1024", says=["give two"])

    def test_what_if_rows_that_the_plans_layout_does_not_fit_name_the_search(self):
        other_depth = ("whatif", self.llama_plan(), "--vary", "model.layers=32,48")
        self.assertIn("--replan", plumb(*other_depth).stderr)
        self.assertNotIn("--replan", plumb(*other_depth, "--replan").stderr)

    def test_what_cannot_exist_exits_3_with_the_nearest_change(self):
        question = ("plan", "llama-3-8b", "h100:16", "--global-batch", 128, "--layout")
        self.refused(3, *question, "tp=16,pp=1,dp=1", says=["tp"])  # 8 kv heads
        self.refused(3, "plan", "gpt2", "h100:16", "--global-batch", 128, "--layout", "pp=16,tp=1", says=["pp"])  # 12 layers
        self.refused(3, "plan", "llama-3.1-405b", "h100:8", "--global-batch", 8, says=["GiB"])


if __name__ == "__main__":
    run_cases()

#!/usr/bin/env python3
"""Checks predictions beside measured rows on the command line.

usage: score_command_line_test.py PLUMB
"""
import json
import os
import pathlib
import statistics

from command_line import CommandLineTest, run_cases


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
        self.assertEqual((source["file"], source["mappings"], source["rows"], source["scored"]),
                         ("rows.json", ["vtrain"], 2, 2))
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

    def test_a_source_that_no_mapping_names_is_read_by_general_rules_or_by_the_users_own(self):
        row = dict(self.ROW, source={"paper": "Somebody 2027"}, hardware="8 x A100 80GB, 8x200Gb HDR IB",
                   measured={"tflops_per_gpu": 140})
        text = self.done("score", self.rows(row))
        self.assertIn("no mapping names this source", text)
        self.assertIn("megatron-lm-2021", text)
        self.assertNotIn("limit:", text)  # those are of other sources
        self.assertEqual(self.json("score", self.rows(row))["sources"][0]["mappings"], ["general"])
        own = {"name": "mine", "cites": ["Somebody"], "clusters": [{"hardware": "A100", "cluster": "a100"}],
               "rules": [{"fill": {"stack": "megatron-core", "model.vocab": 51200, "flops_count": "model"}}]}
        mapped = self.json("score", self.rows(row), "--mapping", self.write("mine.json", json.dumps(own)))
        self.assertEqual(mapped["sources"][0]["mappings"], ["mine"])
        self.assertEqual(mapped["sources"][0]["scored"], 1)
        self.refused(1, "score", self.rows(row), "--mapping", self.write("cut.json", '{"name": "x"'), says=["cut.json"])

    def test_rows_of_papers_that_no_mapping_names_are_all_read(self):
        rows = pathlib.Path(__file__).parents[2] / "docs" / "typed_rows.json"
        source = self.json("score", rows)["sources"][0]
        self.assertEqual(source["mappings"], ["general", "nemo-long-sequence", "torchtitan", "kempner-forge", "infinigence",
                                              "megatron-bridge", "dgxc", "nemo-automodel"])
        self.assertEqual(source["rows"] - source["scored"], 1, source["skipped"])
        for skipped in source["skipped"]:  # its stages count the table and the head as layers
            self.assertRegex(skipped["reason"], "stages of 126 layers")
        self.assertLess(source["step_time"]["median_pct"], 9)  # 9.5 of 98 rows at first, 8.8 of 166, 8.3 of 204

    def test_each_source_is_left_out_in_its_turn_and_judges_the_intervals(self):
        rows = pathlib.Path(__file__).parents[2] / "docs" / "typed_rows.json"
        bars = self.folder / "bars.json"
        left_out = self.json("score", rows, "--holdout", "each-source", "--error-bars", bars)["left_out"]
        self.assertGreater(len({group["left_out"] for group in left_out["groups"]}), 12)
        self.assertEqual({group["framework"] for group in left_out["groups"]}, {"named", "assumed", "unknown"})
        times = next(one for one in left_out["sums"] if one["framework"] == "all but own"
                     and one["quantity"] == "step time")
        self.assertGreater(times["coverage_ratio"], 0.6)
        self.assertLess(times["coverage_ratio"], 0.95)
        self.assertEqual(json.loads(bars.read_text()), left_out["error_bars"])
        self.assertIn("left out in turn (each-device)", self.done("score", rows, "--holdout", "each-device"))

    def test_rows_can_be_read_as_typed_or_by_general_rules_alone(self):
        row = dict(self.ROW, hardware="H100-80GB SXM", precision="bf16", framework="NeMo 25.04",
                   model=dict(self.ROW["model"], vocab=51200))
        typed = self.json("score", self.rows(row), "--assume-default")["rows"][0]
        self.assertEqual((typed["framework"], typed["stack"]), ("assumed", "nemo"))
        general = self.json("score", self.rows(row), "--general-rules")["rows"][0]
        self.assertEqual((general["framework"], general["stack"]), ("named", "nemo"))
        self.refused(2, "score", self.rows(row), "--general-rules", "--assume-default", says=["--general-rules"])

    def test_rows_in_other_words_are_understood(self):
        row = {"source": {"repo": "somebody/else"}, "gpu": "H100 80GB", "num_nodes": "2", "devices_per_node": 8,
               "tensor_model_parallel_size": "4", "micro_batch_size": 1, "global_batch_tokens": 4194304, "dtype": "bf16",
               "activation_checkpointing": True, "model": "llama-3-8b", "sequence_length": 8192,
               "measured": {"mfu": 0.4}}
        scored = self.json("score", self.rows(row))
        self.assertEqual(scored["sources"][0]["skipped"], [])
        flops = 4194304 * (6 * 7.5e9 + 12 * 32 * 4096 * 8192)  # half of attention's square is counted
        self.assertAlmostEqual(scored["rows"][0]["measured"], flops / (0.4 * 989e12 * 16), delta=0.02 * flops / 6.3e15)

    def test_a_faulty_row_is_skipped_with_its_reason(self):
        broken = dict(self.ROW, id=None, dp=3)
        source = self.json("score", self.rows(self.ROW, broken, {"measured": None}))["sources"][0]
        self.assertEqual(source["scored"], 1)
        self.assertEqual([row["id"] for row in source["skipped"]], ["rows.json#2", "rows.json#1"])
        self.assertIn("contradictory degrees", source["skipped"][1]["reason"])

    def test_corrections_are_told_with_the_error_without_them(self):
        row = dict(self.ROW, hardware="A100 SXM, one node, NVSwitch", gpus=8, dp=1, measured={"step_time_s": 40.0})
        source = self.json("score", self.rows(row))["sources"][0]
        self.assertEqual(len(source["corrections"]), 1)
        self.assertLess(source["step_time"]["bias_pct"], source["step_time_uncorrected"]["bias_pct"])

    def test_a_figure_can_be_set_for_all_presets(self):
        rows = self.rows(self.ROW)
        slow = self.json("score", rows, "--set", "cluster.device.gemm_efficiency=0.4")["rows"][0]["predicted"]
        fast = self.json("score", rows, "--set", "cluster.device.gemm_efficiency=0.8")["rows"][0]["predicted"]
        self.assertLess(fast, slow)
        self.refused(1, "score", rows, "--set", "cluster.device.gem=1", says=["gem", "did you mean"])
        self.refused(2, "score", rows, "--set", "model.vocab=1", says=["model.vocab=1", "cluster.PATH=VALUE"])

    def test_a_fit_is_judged_on_rows_that_it_does_not_see(self):
        rows = self.rows(*[dict(self.ROW, id=str(mbs), mbs=mbs) for mbs in (1, 2, 4, 8)])
        fit = self.json("score", rows, "--fit", "cluster.device.gemm_efficiency=0.3,0.9", "--holdout", "layout")["fit"]
        self.assertEqual((fit["seen_groups"], fit["unseen_groups"]), (2, 2))
        self.assertLessEqual(fit["fitted_seen"]["mape_pct"], fit["zero_seen"]["mape_pct"])
        self.refused(1, "score", rows, "--fit", "cluster.device.gemm_efficiency=0.3,0.9", says=["one group"])
        self.refused(1, "score", rows, "--fit", "cluster.device.gemm_efficiency=0.3", says=["LOW,HIGH"])

    def test_a_report_and_a_picture_are_written(self):
        page, picture = self.folder / "page.md", self.folder / "errors.svg"
        text = self.done("score", self.rows(self.ROW), "-o", page, "--svg", picture, "--worst", "1")
        self.assertIn("furthest off", text)
        self.assertIn("| rows.json | step time | 1 | 1 |", page.read_text())
        self.assertIn("PP bubble", page.read_text())
        self.assertIn("</svg>", picture.read_text())

    def test_a_score_of_nothing_is_no_score(self):
        self.refused(1, "score", self.write("empty.json", "{}"), says=["empty.json", "no row"])
        self.refused(1, "score", self.write("none.json", '{"rows": []}'), says=["none.json", "no row"])
        self.refused(1, "score", self.write("cats.json", '{"rows": [{"id": "a", "cat": 1}]}'),
                     says=["cats.json: none of 1 rows could be compared"])

    def test_files_that_are_none_are_refused(self):
        self.refused(1, "score", self.folder / "none.json", says=["none.json"])
        self.refused(1, "score", self.write("cut.json", '{"rows": ['), says=["cut.json"])
        self.refused(1, "score", self.write("rows.json", '{"rows": 3}'), says=["rows.json", "rows"])
        self.refused(1, "score", self.rows(self.ROW), "-o", self.folder / "no" / "page.md", says=["page.md"])

    def test_the_fastest_layout_of_bloom_s_trials_is_among_the_first_three_that_are_predicted(self):
        source = pathlib.Path(__file__).parents[2]
        shared = pathlib.Path(os.environ.get("PLUMB_SHARED", source.parent / "shared"))
        file = shared / "published" / "bigscience_bloom176b.json"
        if not file.exists():
            self.skipTest(f"no {file.name} (set PLUMB_SHARED to the folder that holds it)")
        rows = {row["id"]: row for row in json.loads(file.read_text())["rows"]}
        trials = {}  # [rows of one day, model, devices and batch][layout] (predicted, measured)
        for score in self.json("score", file)["rows"]:
            row = rows[score["id"]]
            if score["quantity"] != "step_time_s":
                continue
            question = (row["section"], json.dumps(row["model"]), row["gpus"], row["gbs"])
            layout = tuple(row[key] for key in ("tp", "pp", "dp", "mbs"))
            trials.setdefault(question, {}).setdefault(layout, []).append((score["predicted"], score["measured"]))
        asked = 0
        for (section, _, devices, _), layouts in trials.items():
            if len(layouts) < 4:  # one of three is always among the first three
                continue
            asked += 1
            with self.subTest(section=section, devices=devices):  # a layout that ran several times counts by its median
                predicted, measured = ({layout: statistics.median(run[i] for run in runs) for layout, runs in
                                        layouts.items()} for i in (0, 1))
                self.assertIn(min(measured, key=measured.get), sorted(predicted, key=predicted.get)[:3])
        self.assertGreaterEqual(asked, 3)


if __name__ == "__main__":
    run_cases()

#!/usr/bin/env python3
"""Checks days, money, energy and failures of trainings on the command line.

usage: budget_command_line_test.py PLUMB
"""
import json

from command_line import CommandLineTest, plumb, run_cases

QUESTION = ("budget", "llama-3-8b", "h100:64", "--global-batch", 128)
SMALL = (*QUESTION, "--devices", "16|32|64")


class Budgets(CommandLineTest):
    def test_what_is_not_given_follows_from_what_is(self):
        of_tokens = self.json(*SMALL, "--tokens", 1e12)
        row = of_tokens["rows"][0]
        self.assertTrue(of_tokens["feasible"] and row["within"])
        self.assertEqual(row["tokens"], 1e12)
        self.assertAlmostEqual(row["device_hours"], row["days"] * 24 * row["devices"], delta=1e-6 * row["device_hours"])
        self.assertAlmostEqual(row["usd"], 2.99 * row["device_hours"], delta=1e-6 * row["usd"])
        steps = 1e12 / (128 * 8192)
        self.assertAlmostEqual(row["days"] * 86400, steps * row["step_time_s"] / row["goodput"], delta=1e-6 * row["days"] * 86400)
        days = of_tokens["rows"][1]["days"]
        again = self.json(*QUESTION, "--deadline", days, "--devices", of_tokens["rows"][1]["devices"])
        self.assertAlmostEqual(again["rows"][0]["tokens"], 1e12, delta=1e6)
        of_money = self.json(*QUESTION, "--money", row["usd"], "--devices", row["devices"])
        self.assertAlmostEqual(of_money["rows"][0]["tokens"], 1e12, delta=1e6)

    def test_the_cheapest_that_meets_the_deadline_comes_first(self):
        answer = self.json("budget", "llama-3-8b", "h100:64|a100:64", "--global-batch", 128, "--devices", "32|64",
                           "--tokens", 1e11, "--deadline", 6)
        within = [row for row in answer["rows"] if row["within"]]
        self.assertTrue(within)
        self.assertEqual(answer["rows"][:len(within)], sorted(within, key=lambda row: row["usd"]))
        self.assertTrue(all(row["days"] <= 6 for row in within))
        self.assertTrue(all(row["days"] > 6 for row in answer["rows"][len(within):]))
        self.assertEqual({row["cluster"].split(":")[0] for row in answer["rows"]}, {"h100", "a100"})

    def test_a_simulation_stands_beside_the_formula(self):
        for seed in (1, 2):
            row = self.json(*SMALL, "--tokens", 1e12, "--mtbf", 2000, "--seed", seed)["rows"][0]
            self.assertLess(abs(row["goodput"] - row["simulated_goodput"]), 3 * row["simulated_goodput_error"])
            self.assertAlmostEqual(row["mean_time_between_interruptions_s"], 2000 * 3600 / row["devices"], delta=1e-3)
        text = self.done(*SMALL, "--tokens", 1e12)
        self.assertIn("Young", text)
        self.assertIn("simulated interruptions (seed 1)", text)

    def test_a_plan_is_billed_as_it_is(self):
        path = self.folder / "plan.json"
        self.done("plan", *QUESTION[1:2], "h100:16", *QUESTION[3:], "-o", path)
        row, = self.json("budget", path, "--tokens", 1e12, "--price", 2)["rows"]
        self.assertEqual(row["devices"], 16)
        self.assertAlmostEqual(row["step_time_s"], self.json("simulate", path)["step_time_s"], places=6)
        self.assertAlmostEqual(row["usd"], 2 * row["device_hours"], delta=1e-6 * row["usd"])
        self.refused(2, "budget", path, "--tokens", 1e12, "--devices", 16, says=["--devices"])
        self.refused(2, "budget", path, "--tokens", 1e12, "--seq", 4096, says=["in the plan already"])

    def test_a_file_of_the_users_own_rates_stands_in_the_place_of_a_preset(self):
        own = {"name": "ours", "source": "our own pager, 2025", "observed": {"devices": 64, "days": 100},
               "interruptions": {"GPU": 8}, "restart_min": {"value": 5, "source": "our runbook"},
               "repair_hours": {"value": 12, "source": "our vendor"},
               "storage_gb_per_s_per_node": {"value": 1, "source": "our filer"}}
        path = self.write("ours.json", json.dumps(own))
        row = self.json(*SMALL, "--tokens", 1e12, "--failures", path)["rows"][0]
        self.assertAlmostEqual(row["mean_time_between_interruptions_s"], 100 * 86400 * 64 / 8 / row["devices"], delta=1)
        self.assertIn("our own pager", self.done(*SMALL, "--tokens", 1e12, "--failures", path))
        for key, value, says in (("restart_min", {"value": -5, "source": "x"}, "restart_min"),
                                 ("restart_min", 5, "source"), ("pager", 1, "pager")):
            broken = self.write("broken.json", json.dumps(dict(own, **{key: value})))
            self.refused(1, *SMALL, "--tokens", 1e12, "--failures", broken, says=["broken.json", says])
        self.refused(2, *SMALL, "--tokens", 1e12, "--failures", "llama", says=["rsc-1", "a file"])

    def test_every_assumption_is_printed_with_its_source(self):
        text = self.done(*SMALL, "--tokens", 1e12, "--restart", 7, "--price", 2)
        for part in ("2407.21783", "7 min: --restart", "repaired", "GB/s of a checkpoint", "2 $", "105 W idle"):
            self.assertIn(part, text)
        other = self.done(*SMALL, "--tokens", 1e12, "--failures", "rsc-1")
        self.assertIn("2410.21680", other)
        self.assertIn("interruptions: none", self.done(*SMALL, "--tokens", 1e12, "--failures", "none"))

    def test_the_knee_is_named_for_strong_and_weak_scaling(self):
        many = ("budget", "llama-3-8b", "h100:512", "--global-batch", 64, "--tokens", 1e11, "--devices", "16|64|256|512")
        self.assertRegex(self.done(*many), r"knee of strong scaling on h100:?\w*: \d+ devices|no knee of strong scaling")
        weak = self.json(*many, "--weak")
        batches = {row["devices"]: row["global_batch"] for row in weak["rows"]}
        self.assertEqual({devices: batch / devices for devices, batch in batches.items()},
                         {devices: 4 for devices in batches})
        knee = [entry["devices"] for entry in weak["knees"]]
        self.assertEqual(knee, [None])

    def test_what_cannot_be_is_a_sentence(self):
        self.refused(2, *QUESTION, says=["give --tokens, --deadline or --money"])
        self.refused(2, *QUESTION, "--tokens", 1e12, "--mtbf", -5, says=["--mtbf"])
        self.refused(2, *QUESTION, "--tokens", 1e12, "--failures", "mine", says=["llama-3", "rsc-1", "none"])
        self.refused(2, *QUESTION, "--tokens", 1e12, "--failures", "none", "--seed", 3, says=["--seed"])
        self.refused(2, *QUESTION, "--tokens", 1e12, "--weak", says=["--devices"])
        self.refused(1, "budget", "llama-3-8b", "b200:16", "--devices", 16, "--global-batch", 128, "--money", 1e6,
                     says=["has no price"])
        self.refused(1, "budget", "resnet-50", "h100:8", "--devices", 8, "--global-batch", 64, "--tokens", 1e9,
                     says=["counts tokens"])
        self.refused(3, *QUESTION, "--tokens", 1e12, "--devices", 64, "--mtbf", 0.001, says=["--mtbf"])
        self.refused(3, "budget", "llama-3.1-405b", "h100:8", "--devices", 8, "--global-batch", 8, "--tokens", 1e9)
        late = self.json_of_code(3, *QUESTION, "--devices", "32|64", "--tokens", 1e15, "--deadline", 1)
        self.assertFalse(late["feasible"])
        self.assertEqual([row["within"] for row in late["rows"]], [False, False])

    def json_of_code(self, code, *arguments):
        result = plumb(*arguments, "--json")
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn("come nearest", result.stderr)
        return json.loads(result.stdout)


if __name__ == "__main__":
    run_cases()

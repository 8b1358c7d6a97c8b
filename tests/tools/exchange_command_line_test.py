#!/usr/bin/env python3
"""Checks the exchange with trainers on the command line: their settings out and in, and what is refused.

usage: exchange_command_line_test.py PLUMB
"""
import ast
import json
import subprocess
import tomllib

from command_line import CommandLineTest, plumb, run_cases

ENDINGS = {"megatron": "sh", "megatron-bridge": "py", "deepspeed": "json", "torchtitan": "toml", "nanotron": "yaml", "fsdp2": "yaml"}
LAYOUTS = {"megatron": "tp=2,pp=2,dp=4,zero=1,mbs=1", "megatron-bridge": "tp=2,pp=2,dp=4,zero=1,mbs=1",
           "deepspeed": "tp=1,pp=1,dp=16,zero=3,mbs=1,recompute=none", "torchtitan": "tp=2,pp=2,dp=4,zero=2,sp=1,mbs=1,schedule=1f1b",
           "nanotron": "tp=2,pp=2,dp=4,zero=1,mbs=1,v=1,cp=1,schedule=1f1b,recompute=none,split=16:16",
           "fsdp2": "tp=1,pp=1,dp=16,zero=3,mbs=1,cp=1,recompute=full"}


class Exchange(CommandLineTest):
    def plan(self, layout, model="llama-3-8b", cluster="h100:16", stack="plumb"):
        path = self.folder / "plan.json"
        self.done("plan", model, cluster, "--global-batch", 128, "--layout", layout, "--stack", stack, "--headroom", 0, "-o", path)
        return path

    def test_every_target_gets_a_file_that_its_own_language_reads_and_plumb_reads_back(self):
        for target, ending in ENDINGS.items():
            with self.subTest(target):
                plan = self.plan(LAYOUTS[target])
                file = self.folder / f"run.{ending}"
                said = plumb("export", plan, "--to", target, "-o", file)
                self.assertEqual(said.returncode, 0, said.stderr)
                text = file.read_text()
                if ending == "toml":
                    self.assertEqual(tomllib.loads(text)["parallelism"]["tensor_parallel_degree"], 2)
                if ending == "json":
                    self.assertEqual(json.loads(text)["zero_optimization"]["stage"], 3)
                if ending == "py":
                    ast.parse(text)
                if ending == "sh":
                    self.assertEqual(subprocess.run(["bash", "-n", file]).returncode, 0)
                again = self.folder / "again.json"
                self.done("import", file, "--from", target, "--model", "llama-3-8b", "--cluster", "h100", "--devices", 16,
                          "--global-batch", 128, "--seq", 8192, "--layout", "mbs=1", "-o", again)
                before, after = json.loads(plan.read_text()), json.loads(again.read_text())
                for key, value in before["layout"].items():
                    if key != "split":
                        self.assertEqual(after["layout"].get(key), value, key)
                for key in ("global_batch", "seq", "precision", "gradient_precision", "optimizer"):
                    self.assertEqual(after["training"][key], before["training"][key], key)
                self.assertGreater(self.json("simulate", again)["step_time_s"], 0)

    def test_the_target_of_a_file_is_told_by_its_settings(self):
        for target, ending in ENDINGS.items():
            file = self.folder / f"run.{ending}"
            self.done("export", self.plan(LAYOUTS[target]), "--to", target, "-o", file)
            answer = self.json("import", file, "--model", "llama-3-8b", "--devices", 16)
            self.assertEqual(answer["target"], target)
            self.assertIn("plumb simulate llama-3-8b CLUSTER --global-batch", answer["question"])
        self.refused(1, "import", self.write("other.toml", "[tool]\nname = 'x'\n"), says=["other.toml", "--from"])

    def test_uneven_stages_are_handed_over_and_back(self):
        plan = self.plan("tp=2,pp=4,dp=2,zero=1,mbs=1,v=1,cp=1,schedule=1f1b,split=7:9:9:7")
        text = self.done("export", plan, "--to", "megatron")
        self.assertIn('--pipeline-model-parallel-layout "Et*7|(ttttttttt|)*2t*7L"', text)
        answer = self.json("import", self.write("run.sh", text))
        self.assertEqual(answer["layout"]["split"], [7, 9, 9, 7])
        self.assertEqual(answer["model"]["hidden"], 4096)
        self.assertEqual(answer["stack"], "megatron-core")

    def test_what_a_target_cannot_express_is_refused_by_name_and_exits_3(self):
        plan = self.plan("tp=2,pp=2,dp=4,zero=1,mbs=1,v=1,cp=1,schedule=zb-h1")
        for target in ENDINGS:
            file = self.folder / "kept"
            said = plumb("export", plan, "--to", target, "-o", file)
            self.assertEqual((said.returncode, file.exists()), (3, False), said.stderr)
            self.assertIn(f"{target} cannot express", said.stderr)
        self.assertIn("schedule=zb-h1", plumb("export", plan, "--to", "megatron").stderr)
        self.refused(2, "export", plan, "--to", "keras", says=["megatron", "torchtitan"])
        self.refused(2, "export", plan, "--to", "torchtitan", "--slurm", self.folder / "job.sh", says=["-o"])

    def test_slurm_starts_the_trainer_with_the_file(self):
        job, script = self.folder / "job.toml", self.folder / "job.sbatch"
        self.done("export", self.plan(LAYOUTS["torchtitan"]), "--to", "torchtitan", "-o", job, "--slurm", script)
        text = script.read_text()
        self.assertIn("#SBATCH --nodes=2\n", text)
        self.assertIn(f"--job.config_file {job}", text)
        self.assertEqual(subprocess.run(["bash", "-n", script]).returncode, 0)

    def test_an_order_is_exchanged_as_pytorchs_csv(self):
        plan = self.plan("tp=1,pp=2,dp=8,zero=1,mbs=2,v=1,cp=1,schedule=1f1b,recompute=full")
        order = self.folder / "order.csv"
        self.done("export", plan, "--to", "torch-csv", "-o", order)
        self.done("schedule", "check", order)
        again = self.folder / "again.json"
        self.done("import", order, "--model", "llama-3-8b", "--cluster", "h100", "--global-batch", 128, "--seq", 8192, "--layout",
                  "dp=8,tp=1,cp=1,mbs=2,zero=1,recompute=full", "-o", again)
        self.assertEqual(self.json("simulate", again)["peak_activations"], self.json("simulate", plan)["peak_activations"])
        self.assertIn(f"schedule={order}", self.done("import", order))

    def test_a_plan_needs_what_the_file_leaves_open(self):
        file = self.write("ds.json", '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}')
        self.refused(2, "import", file, "-o", self.folder / "plan.json", says=["--model", "--devices", "--global-batch"])
        answer = self.json("import", file)
        self.assertEqual((answer["global_batch"], answer["layout"]["zero"]), (None, 2))

    def test_bad_settings_are_a_sentence_with_their_place(self):
        self.refused(1, "import", self.folder / "absent.toml", says=["absent.toml", "no such file"])
        self.refused(1, "import", self.plan(LAYOUTS["torchtitan"]), says=["a plan of Plumb's", "plumb export"])
        self.refused(1, "import", self.write("a.toml", "[a\n"), "--from", "torchtitan", says=["a.toml:1"])
        self.refused(1, "import", self.write("run.sh", "--tensor-model-parallel-size two"), "--from", "megatron", says=["run.sh", "tp"])
        self.refused(1, "import", self.write("r.sh", "--recompute-granularity full --recompute-method block"), "--from", "megatron",
                     says=["r.sh", "the method block", "give their number"])


if __name__ == "__main__":
    run_cases()

#!/usr/bin/env python3
"""Checks bad input on the command line: missing files, files with faults, and questions that say too little.

usage: bad_input_command_line_test.py PLUMB
"""
import json
import random
import re
import subprocess

from command_line import PLUMB, SANITIZED, CommandLineTest, bound_memory, run_cases


class BadInput(CommandLineTest):
    def test_a_hundred_megabytes_of_garbage_are_refused_with_bounded_memory(self):
        size = 10_000_000 if SANITIZED else 100_000_000
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

    def test_files_carry_their_format_number_first_and_a_newer_one_is_refused(self):
        schedule, link = self.folder / "made.json", self.folder / "link.json"
        self.done("schedule", "make", "1f1b", "-p", 2, "-m", 4, "-o", schedule)
        self.done("calibrate", "--only", "transport", "-o", link)
        files = {
            "plan": (self.llama_plan().read_text(), lambda path: ("simulate", path)),
            "schedule": (schedule.read_text(), lambda path: ("schedule", "check", path)),
            "cluster": (self.done("clusters", "h100"), lambda path: ("clusters", path)),
            "stack": (self.done("stacks", "megatron-core"), lambda path: ("stacks", path)),
            "measured link": (link.read_text(), lambda path: ("validate", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 2,
                                                              "--costs", "f=1,b=1,unit=ms", "--steps", 1, "--link", path)),
        }
        model = json.loads(self.done("models", "gpt2"))
        del model["parameters"]  # `plumb models` adds it
        files["model"] = (json.dumps(model), lambda path: ("models", path))
        for what, (text, question) in files.items():
            with self.subTest(what):
                document = json.loads(text)
                self.assertEqual((next(iter(document)), document["plumb_format"]), ("plumb_format", 1))
                self.done(*question(self.write("file.json", json.dumps(document))))
                path = self.write("newer.json", json.dumps({**document, "plumb_format": 2}))
                self.refused(1, *question(path), says=[f"{path}: format 2 of a {what} is newer", "reads up to 1: update Plumb, or "])
                path = self.write("odd.json", json.dumps({**document, "plumb_format": -1}))
                self.refused(1, *question(path), says=[f"{path}: format -1 is no whole number of 1 or more"])
                del document["plumb_format"]
                self.done(*question(self.write("today.json", json.dumps(document))))
        plan = json.loads(self.llama_plan().read_text())
        plan["cluster"]["plumb_format"] = 1
        self.refused(1, "simulate", self.write("inside.json", json.dumps(plan)), says=["inside.json: cluster.plumb_format", "unknown"])

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
        self.refused(2, "plan", "gpt2", "h100:8", says=["--global-batch"])
        self.refused(2, "simulate", says=["plan file"])
        self.refused(2, "simulate", "--schedule", "1f1b", says=["-p"])
        self.refused(2, "simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", "f=1,q=2", says=["q"])
        self.refused(1, "trace", "info", self.write("t.json", '{"traceEvents": ['), says=["t.json"])

    def test_mistakes_in_the_options_are_usage_whoever_finds_them(self):
        question = ("plan", "gpt2", "h100:8", "--global-batch", 8)
        for arguments, says in (
                ((*question, "--layout", "foo=1"), ["layout foo", "give one of"]),
                ((*question, "--layout", "pp=x"), ["pp"]),
                ((*question, "--precision", "bf17"), ["--precision", "bf16"]),
                ((*question, "--optimizer", "adam2"), ["--optimizer"]),
                ((*question, "--split", "a,b"), ["split"]),
                (("schedule", "make", "1f1b"), ["-p", "-m"]),
                (("simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", "q=1"), ["q", "give one of f, i, w"]),
                (("simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--slow", "x"), ["slow"]),
                (("whatif", self.llama_plan(), "--vary", "foo=1"), ["vary foo"])):
            with self.subTest(arguments):
                self.refused(2, *arguments, says=says)

    def test_a_verb_or_an_option_that_there_is_not_gets_the_nearest(self):
        for arguments, says in ((("paln",), ['no verb "paln"', 'did you mean "plan"?']),
                                (("schedule", "mke", "1f1b"), ['no verb "mke"', 'did you mean "make"?']),
                                (("xyzzy",), ['no verb "xyzzy"', "give one of models, clusters"]),
                                (("plan", "gpt2", "h100:8", "--globalbatch", 3), ["no option --globalbatch", '"--global-batch"']),
                                (("plan", "gpt2", "h100:8", "--globalbatch=3"), ["no option --globalbatch", '"--global-batch"']),
                                (("plan", "gpt2", "h100:8", "--watchdog", 3), ["no option --watchdog", "`plumb run` has one"])):
            with self.subTest(arguments):
                self.refused(2, *arguments, says=says)

    def test_nothing_is_proposed_for_what_is_like_nothing(self):
        for model in ("model.onnx", ".", "x", "zzzzzzzz"):
            self.assertNotIn("did you mean", self.refused(1, "plan", model, "h100:8", "--global-batch", 8).stderr)

    def test_counts_may_end_in_k_m_or_g(self):
        def batch(text):
            return self.done("simulate", "gpt2", "h100:8", "--global-batch", text, "--layout", "tp=1,pp=1,dp=8,mbs=1", "--json")

        self.assertEqual(batch("1k"), batch("1024"))
        self.assertEqual(self.done("schedule", "make", "1f1b", "-p", 2, "-m", "1K"), self.done("schedule", "make", "1f1b", "-p", 2, "-m", 1024))
        for text in ("1Q", "1.5", "", "k", "1kk", "-1", "0", "1e3", "99999999999999999999", "9999999999G"):
            said = self.refused(2, "plan", "gpt2", "h100:8", "--global-batch", text, says=["--global-batch"]).stderr
            self.assertLess(len(said), 250)
        self.assertIn("8k is 8192", self.done("plan", "--help"))

    def test_a_known_kind_of_file_is_named_with_what_reads_it(self):
        trace = self.folder / "trace.json"
        self.done("simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--trace", trace)
        deepspeed = self.write("ds.json", '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}')
        onnx = self.folder / "model.onnx"
        onnx.write_bytes(b"\x08\x07\x12\xff")
        model = self.write("model.json", self.done("models", "gpt2"))
        cluster = self.write("cluster.json", self.done("clusters", "h100"))
        stack = self.write("stack.json", self.done("stacks", "megatron-core"))
        log = self.write("ar.log", self.nccl_tests_log([1 << 20]))
        schedule = self.folder / "schedule.json"
        self.done("schedule", "make", "1f1b", "-p", 2, "-m", 2, "-o", schedule)
        costs = self.write("costs.json", '{"parts": [{"forward_s": 1, "backward_s": 2}]}')
        certificate = self.folder / "certificate.json"
        self.done("schedule", "search", "-p", 2, "-m", 2, "--certificate", certificate)
        answer = self.write("answer.json", self.done("plan", "gpt2", "h100:8", "--global-batch", 8, "--json"))
        plan = self.llama_plan()
        asked = ("h100:8", "--global-batch", 8)
        for arguments, says in ((("plan", trace, *asked), ["a Chrome trace, and a model is wanted", "plumb trace info"]),
                                (("simulate", trace), ["a Chrome trace, and a plan is wanted", "plumb trace info"]),
                                (("plan", deepspeed, *asked), ["a DeepSpeed config", "--global-batch"]),
                                (("plan", onnx, *asked), ["this is no ONNX model", "its end is missing"]),
                                (("plan", plan, *asked), ["a plan, and a model is wanted", "plumb simulate"]),
                                (("plan", "gpt2", model, "--global-batch", 8), ["a model, and a cluster is wanted", "plumb plan"]),
                                (("plan", cluster, *asked), ["a cluster, and a model is wanted"]),
                                (("plan", "gpt2", *asked, "--stack", cluster), ["a cluster, and a training stack is wanted"]),
                                (("memory", stack), ["a training stack, and a plan is wanted", "--stack"]),
                                (("whatif", answer, "--vary", "pp=1"), ["the answer of `plumb plan --json`", "-o FILE"]),
                                (("run", log), ["an nccl-tests log", "calibrate --from"]),
                                (("schedule", "check", plan), ["a plan, and a schedule is wanted"]),
                                (("schedule", "show", onnx), ["an ONNX model"]),
                                (("memory", schedule), ["a schedule, and a plan is wanted"]),
                                (("memory", costs), ["a file of costs, and a plan is wanted", "--costs"]),
                                (("schedule", "check", certificate), ["a schedule's certificate, and a schedule is wanted", "--certificate"]),
                                (("simulate", "--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", plan), ["a plan, and a file of costs is wanted"]),
                                (("schedule", "check", schedule, "--certificate", costs), ["a file of costs, and a schedule's certificate"]),
                                (("trace", "info", plan), ["a plan, and a Chrome trace is wanted"]),
                                (("score", plan), ["a plan, and a file of published rows is wanted"]),
                                (("validate", deepspeed), ["a DeepSpeed config"])):
            with self.subTest(arguments):
                self.refused(1, *arguments, says=[*says])

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
        self.refused(2, *calibrate, "--from", log, says=["--base"])
        self.refused(2, *calibrate, "--base", "h100", says=["--from"])

    def test_a_plan_for_a_framework_runs_on_plumbs_own_executor_which_says_so(self):
        plan = self.folder / "plan.json"
        self.done("plan", "gpt-nano", "h100:1", "--global-batch", "4", "--precision", "fp32", "--stack", "megatron-core",
                  "-o", plan)
        said = self.done("run", plan, "--backend", "cpu", "--steps", "1")
        self.assertIn("planned for the stack megatron-core and priced anew for Plumb's own executor", said)
        self.refused(1, "plan", "gpt-nano", "h100:1", "--global-batch", "4", "--stack", "megatron-cor",
                     says=["megatron-core"])

    def test_numbers_of_options_are_finite_and_of_their_kind(self):
        simulate = ("simulate", "--schedule", "1f1b", "-p", 2, "-m", 4)
        plan = self.llama_plan()
        for option, before in (("--tolerance", ("validate", plan)), ("--watchdog", ("run", plan)), ("--memory", simulate),
                               ("--burst-kib", simulate), ("--shrink", ("run", plan)), ("--clip-norm", ("run", plan)),
                               ("--recalibrate", ("validate", plan)), ("--budget", ("calibrate",))):
            for value in ("nan", "inf", "-inf", "1e999", "1e300", "x", "1x"):
                with self.subTest(f"{option}={value}"):
                    says = self.refused(2, *before, f"{option}={value}", says=[option, value]).stderr
                    self.assertLess(len(says), 200)
        for option, before in (("--top", ("plan", "gpt2", "h100:8")), ("--microbatches", simulate), ("--steps", ("run", plan)),
                               ("--global-batch", ("plan", "gpt2", "h100:8")), ("--seed", ("run", plan))):
            for value in ("nan", "1e999", "x", "1.5", "99999999999999999999999", "-99999999999999999999999"):
                with self.subTest(f"{option}={value}"):
                    says = self.refused(2, *before, f"{option}={value}", says=[option, value]).stderr
                    self.assertLess(len(says), 200)
        for option, value in (("--costs", "f=nan"), ("--costs", "f=inf"), ("--costs", "f=1:nan"), ("--costs", "mib=nan,gb_per_s=1"),
                              ("--noise", "cv=nan"), ("--noise", "cv=0.1,comm_cv=inf"), ("--slow", "rank=0:nan"),
                              ("--slow", "rank=0:inf")):
            with self.subTest(f"{option} {value}"):
                self.refused(2, *simulate, option, value, says=["nan" if "nan" in value else "inf"])
        self.refused(2, "whatif", plan, "--vary", "cluster.network.bandwidth_gb_per_s=nan")
        self.refused(2, "whatif", plan, "--vary", "cluster.network.bandwidth_gb_per_s=1e999")

    def test_a_number_too_large_is_refused_by_every_reader(self):
        order = self.folder / "order.json"
        self.done("schedule", "make", "1f1b", "-p", 2, "-m", 2, "-o", order)
        cluster = self.done("clusters", "h100")
        texts = {"model.json": self.done("models", "gpt2"), "cluster.json": cluster, "plan.json": self.llama_plan().read_text(),
                 "stack.json": self.done("stacks", "megatron-core"), "order.json": order.read_text(),
                 "trace.json": '{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "pid": 0, "tid": 0, "name": "a"}]}',
                 "config.json": '{"model_type": "llama", "hidden_size": 64}', "wires.json": '{"nodes": 2}', "link.json": '{"link": {"latency_us": 1}}',
                 "costs.json": '{"parts": [{"forward_s": 1}]}', "certificate.json": '{"costs_ps": {"forward": [1]}}',
                 "rows.json": '{"rows": [1]}', "profile.json": '{"nodes": [1], "edges": [2]}'}
        question = ("--global-batch", 8, "--layout", "dp=8")
        costs = ("--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", "f=1")
        verbs = {"model.json": (("plan", "{}", "h100:8", *question), ("models", "{}"), ("memory", "{}", "h100:8", *question),
                                ("whatif", "{}", "h100:8", *question, "--vary", "layout.zero=1"),
                                ("budget", "{}", "h100:8", *question, "--tokens", 1e9)),
                 "cluster.json": (("plan", "gpt2", "{}", *question), ("clusters", "{}")),
                 "plan.json": (("simulate", "{}"), ("memory", "{}"), ("whatif", "{}", "--vary", "layout.zero=1"), ("run", "{}"), ("validate", "{}")),
                 "stack.json": (("plan", "gpt2", "h100:8", *question, "--stack", "{}"), ("stacks", "{}")),
                 "order.json": (("schedule", "check", "{}"), ("simulate", "--schedule", "{}")),
                 "trace.json": (("trace", "info", "{}"),), "config.json": (("plan", "{}", "h100:8", *question),),
                 "wires.json": (("simulate", "plan.json", "--topology", "{}"),), "link.json": (("run", "--backend", "timed", *costs, "--link", "{}"),),
                 "costs.json": (("simulate", *costs[:-1], "{}"),), "certificate.json": (("schedule", "check", *costs[1:-2], "--certificate", "{}"),),
                 "rows.json": (("score", "{}"),), "profile.json": (("partition", "{}", "h100:2"),)}
        self.assertEqual(texts.keys(), verbs.keys())
        for name, text in texts.items():
            path = self.write(f"vast-{name}", re.sub(r'(": |\[)[\d.]+', r"\g<1>1e999", text, count=1))
            for verb in verbs[name]:
                with self.subTest(f"{name}: {verb}"):
                    arguments = [path if word == "{}" else self.folder / word if word == "plan.json" else word for word in verb]
                    self.refused(1, *arguments, says=[path.name, "1e999", "line"])

    def test_a_number_too_small_is_refused_and_aborts_nothing(self):
        cluster = json.loads(self.done("clusters", "h100"))
        for key in ("memory_bandwidth_gb_per_s", "kernel_fixed_us", "gemm_efficiency"):
            for value in ("5e-324", "1e-300", "1e300"):
                changed = {**cluster, "device": {**cluster["device"], key: 12345.5}}
                path = self.write("cluster.json", json.dumps(changed).replace("12345.5", value))
                for verb in (("clusters", path), ("plan", "gpt2", path, "--global-batch", 8)):
                    self.refused(1, *verb, says=["cluster.json", f"device.{key}", "out of range"])

    def test_version_names_the_optional_parts(self):
        text = self.done("--version")
        for part in ("plumb", "CUDA", "NCCL", "MPI"):
            self.assertIn(part, text)


if __name__ == "__main__":
    run_cases()

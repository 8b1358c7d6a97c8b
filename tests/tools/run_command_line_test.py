#!/usr/bin/env python3
"""Checks runs, validations and measurements on the command line.

usage: run_command_line_test.py PLUMB
"""
import json
import signal
import subprocess
import time

from command_line import PLUMB, CommandLineTest, plumb, run_cases


class Running(CommandLineTest):
    """The cpu backend on a machine whose description is written by hand, so that nothing need be measured."""

    def cpu_plan(self, layout, steps_batch=4, *options, devices=2, model="gpt-nano"):
        cluster = {"name": "hand-made", "devices": devices,
                   "device": {"name": "cpu", "peak_tflops": {"fp32": 0.05, "bf16": 0.05, "fp16": 0.05}, "memory_gib": 4, "reserved_gib": 0,
                              "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5, "attention_efficiency": 0.5,
                              "memory_efficiency": 0.5, "kernel_fixed_us": 1, "compute_units": 1, "gemm_tile": 1},
                   "node": {"devices": devices, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}}
        path = self.write("cpu.json", json.dumps(cluster))
        plan = self.folder / "cpu.plan.json"
        self.done("plan", model, path, "--global-batch", steps_batch, "--seq", 32, "--layout", layout,
                  "--stack", "plumb", *options, "-o", plan)
        return plan

    def test_a_validation_says_how_fast_the_machine_was_and_may_measure_it_first(self):
        plan = self.cpu_plan("pp=2,schedule=1f1b,mbs=1", 4, "--precision", "fp32")
        known = self.json("validate", plan, "--steps", 2, "--recalibrate", 1)["machine"]
        for moment in ("speed_before", "speed_after"):
            self.assertGreater(known[moment], 0.2)
            self.assertLess(known[moment], 5)
        self.assertGreaterEqual(known["others_cores"], 0)
        unknown = self.json("validate", plan, "--steps", 2)["machine"]  # a cluster without samples of kernels
        self.assertIsNone(unknown["speed_before"])
        self.refused(2, "validate", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 2, "--costs", "f=1,b=1,unit=ms",
                     "--recalibrate", 1, says=["--recalibrate", "--backend cpu"])

    def test_a_plan_trains_and_its_loss_falls(self):
        plan = self.cpu_plan("pp=2,schedule=1f1b,mbs=1")
        losses = self.json("run", plan, "--steps", 20)["losses"]
        self.assertEqual(len(losses), 20)
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(losses, self.json("run", plan, "--steps", 20)["losses"])  # every run gives the same

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
            for layout in ("tp=2,dp=2,ep=2,sp=1,zero=0,mbs=1", "tp=2,dp=2,ep=4,etp=1,sp=1,zero=0,mbs=1",
                           "cp=2,pp=2,ep=2,zero=0,mbs=1,schedule=zb-h1"):
                spread.append(self.json("run", self.cpu_plan(layout, 4, *exact, devices=4, model=model), "--steps", 5))
            for answer in spread:
                for key in ("losses", "balance_losses"):
                    self.assertAlmostEqual(answer[key][-1], alone[key][-1], delta=1e-4 * alone[key][-1])
        result = plumb("validate", self.cpu_plan("dp=2,ep=2,zero=0,mbs=1", model="mixtral-nano"), "--steps", 2, "--json")
        self.assertGreater(json.loads(result.stdout)["step_time"]["measured_s"], 0)
        self.assertIn("follows from the picks", result.stderr)
        self.refused(3, "plan", "mixtral-nano", self.folder / "cpu.json", "--global-batch", 4, "--seq", 32, "--layout", "tp=2,ep=1,etp=1", "--stack", "plumb",
                     says=["etp=2"])
        self.refused(3, "plan", "mixtral-nano", self.folder / "cpu.json", "--global-batch", 4, "--seq", 32, "--layout", "tp=2,ep=2", "--stack", "plumb",
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
        self.refused(1, "run", self.cpu_plan("pp=1,dp=2,mbs=1,zero=1"), "--backend", "timed", says=["ZeRO-1", "zero=0", "--backend cpu"])

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
        self.refused(2, "run", plan, "--meshes", "tp2,pp2", says=["\"pp2\" is no mesh"])
        undivided = plumb("run", plan, "--meshes", "tp2,dp4")  # behind a note about the number of devices
        self.assertEqual(undivided.returncode, 1)
        self.assertIn("micro-batches of 2 sequences", undivided.stderr)
        self.refused(2, "run", plan, "--reshard", "direct", says=["--meshes"])

    def test_a_prediction_for_meshes_of_different_shape_is_held_against_their_run(self):
        plan = self.cpu_plan("tp=2,pp=2,mbs=2", devices=4)
        losses = self.json("run", plan, "--steps", 3, "--meshes", "tp2,dp2")["losses"]
        told = self.json("simulate", plan, "--meshes", "tp2,dp2", "--reshard", "all-gather")
        prediction = self.folder / "prediction.json"
        answer = self.json("validate", plan, "--meshes", "tp2,dp2", "--steps", 1, "-o", prediction)
        self.assertEqual(answer["losses"], losses)  # two steps of three warm up
        self.assertEqual(answer["step_time"]["predicted_s"], told["step_time_s"])
        self.assertEqual(json.loads(prediction.read_text())["peak_memory_bytes"], told["peak_memory_bytes"])
        self.assertEqual(json.loads(prediction.read_text())["step_time_s"], told["step_time_s"])
        self.assertIn("meshes=tp2:dp2", answer["title"])
        self.refused(1, "validate", plan, "--meshes", "tp2", says=["pipeline ranks", "give each one"])
        self.refused(2, "validate", plan, "--reshard", "direct", says=["--meshes"])
        self.refused(2, "validate", plan, "--meshes", "tp2,dp2", "--backend", "timed", says=["--meshes", "--backend cpu"])

    def test_meshes_of_different_shape_are_predicted(self):
        question = ["llama-2-7b", "h100:8", "--global-batch", 16, "--layout", "pp=2,tp=4,mbs=2,sp=0"]
        answer = self.json("simulate", *question, "--meshes", "tp4,dp2tp2")
        self.assertEqual([(rank["dp"], rank["tp"], rank["mbs"]) for rank in answer["meshes"]], [(1, 4, 2), (2, 2, 1)])
        self.assertEqual([(way["from"], way["to"]) for way in answer["reshardings"]], [(0, 1), (1, 0)])
        times = {}
        for reshard in ("direct", "all-gather", "broadcast"):
            told = self.json("simulate", *question, "--meshes", "tp4,dp2tp2", "--reshard", reshard)
            self.assertEqual({way["kind"] for way in told["reshardings"]}, {reshard})
            times[reshard] = told["reshardings"][0]["time_s"]
        self.assertEqual(answer["reshardings"][0]["time_s"], min(times.values()))
        self.assertIn("crosses", self.done("simulate", *question, "--meshes", "tp4,dp2tp2"))
        self.refused(1, "simulate", *question, "--meshes", "tp4", says=["2", "give each one"])
        self.refused(2, "simulate", *question, "--reshard", "direct", says=["--meshes"])
        self.assertIn("rank 1 │", self.done("simulate", *question, "--meshes", "tp4,dp2tp2", "--draw"))
        self.refused(1, "simulate", *question, "--meshes", "tp4,dp2tp2", "--slow", "rank=0:0.5", says=["faults", "without meshes"])
        # The key of a layout says the same, and equal meshes are the plain layout.
        named = self.json("simulate", *question[:-1], "meshes=tp4:dp2tp2,mbs=2,sp=0")
        self.assertEqual(named["reshardings"], answer["reshardings"])
        alike = self.json("simulate", *question[:-1], "meshes=dp2tp2:dp2tp2,mbs=2")
        plain = self.json("simulate", *question[:-1], "dp=2,tp=2,pp=2,mbs=1")
        self.assertEqual(alike["step_time_s"], plain["step_time_s"])

    def test_a_plan_with_meshes_is_shown_and_trains_and_no_trainer_takes_it(self):
        alone = self.json("run", self.cpu_plan("pp=2,mbs=2"), "--steps", 5)["losses"][-1]
        plan = self.cpu_plan("meshes=tp2:dp2,mbs=2", devices=4)  # in the place of the other plan's file
        layout = json.loads(plan.read_text())["layout"]
        self.assertEqual((layout["meshes"], layout["pp"]), ("tp2:dp2", 2))
        self.assertAlmostEqual(self.json("run", plan, "--steps", 5)["losses"][-1], alone, delta=1e-4 * alone)
        told = self.json("validate", plan, "--steps", 1)["step_time"]["predicted_s"]
        self.assertEqual(told, self.json("simulate", plan, "--reshard", "all-gather")["step_time_s"])
        self.assertEqual(len(self.json("memory", plan)["ranks"]), 2)
        self.refused(1, "run", plan, "--backend", "timed", says=["different shape", "--backend cpu"])
        self.refused(1, "export", plan, "--to", "megatron", says=["meshes=tp2:dp2", "one mesh for all"])
        self.refused(1, "export", plan, "--to", "chakra", "-o", self.folder / "trace", says=["one mesh for all"])
        self.assertIn("FORWARD", self.done("export", plan, "--to", "torch-csv").upper().replace("0F0", "FORWARD"))
        self.refused(3, "simulate", "llama-2-7b", "h100:8", "--global-batch", 16, "--layout", "meshes=tp2:dp2,mbs=2",
                     says=["need 4 devices", "sum up to 8"])
        self.refused(2, "plan", "llama-2-7b", "h100:8", "--global-batch", 16, "--layout", "meshes=tp4:no,mbs=2", says=["\"no\" is no mesh"])

    def test_layers_are_computed_again_and_state_has_owners_by_layer(self):
        plan = self.cpu_plan("pp=1,dp=2,mbs=1,zero=3")
        whole = self.json("run", plan, "--steps", 5)
        for options in (("--recompute-every", 2), ("--zero-by", "layer")):
            answer = self.json("run", plan, "--steps", 5, *options)
            self.assertAlmostEqual(answer["losses"][-1], whole["losses"][-1], delta=1e-4)
        self.assertLess(self.json("run", plan, "--steps", 1, "--recompute-every", 2)["peak_memory_bytes"][0],
                        whole["peak_memory_bytes"][0])

    def test_state_that_replicas_share_takes_the_memory_that_was_predicted(self):
        peaks = []
        for zero in range(4):
            answer = self.json("validate", self.cpu_plan(f"pp=1,dp=2,mbs=1,zero={zero}"), "--steps", 1)
            rank = answer["ranks"][0]
            self.assertAlmostEqual(rank["measured_peak_bytes"] / rank["predicted_peak_bytes"], 1, delta=0.1)
            peaks.append(rank["measured_peak_bytes"])
        self.assertEqual(peaks, sorted(peaks, reverse=True))

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
                continue  # the run had ended already
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

    def started(self, *arguments):
        """Starts the tool, waits for its first checkpoint, and returns the running tool and the checkpoint's folder."""
        folder = self.folder / "state"
        process = subprocess.Popen([PLUMB, *map(str, arguments), "--checkpoint-dir", folder, "--checkpoint-every", "1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (folder / "checkpoint.plumb").exists() and process.poll() is None:
            time.sleep(0.001)
        return process, folder

    def test_a_signal_ends_a_run_with_a_checkpoint_and_what_was_measured(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        steps = 5000
        whole = self.json("run", plan, "--steps", 12)["losses"]
        for sent, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process, folder = self.started("run", plan, "--steps", steps, "--json", "--trace", self.folder / "last.json")
            process.send_signal(sent)
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, code, err)
            losses = json.loads(out)["losses"]
            self.assertGreaterEqual(len(losses), 1)
            self.assertEqual(losses[:12], whole[:len(losses)])
            self.assertIn("stopping behind this step", err)
            self.assertIn(f"plumb: {sent.name} has ended this run behind step {len(losses)} of {steps}", err)
            self.assertIn("--resume", err)
            self.assertEqual(self.json("trace", "info", self.folder / "last.json")["source"], "measured")
            self.assertEqual([path.name for path in folder.iterdir()], ["checkpoint.plumb"])
            rest = self.json("run", plan, "--steps", len(losses) + 1, "--checkpoint-dir", folder, "--resume")
            self.assertEqual(rest["first_step"], len(losses))
            (folder / "checkpoint.plumb").unlink()
        costs = ("--schedule", "1f1b", "-p", 2, "-m", 4, "--costs", "f=10,b=20,unit=ms")
        for verb in ("run", "validate"):
            process = subprocess.Popen([PLUMB, verb, "--backend", "timed", *map(str, costs), "--steps", "1000"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(2)
            process.terminate()
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 143, err)
            self.assertIn("SIGTERM has ended this run", err)
            self.assertIn("step time", out)

    def test_a_second_signal_ends_a_run_at_once(self):
        process = subprocess.Popen([PLUMB, "run", "--backend", "timed", "--schedule", "1f1b", "-p", "2", "-m", "2", "--costs", "f=60",
                                    "--watchdog", "1000"], stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        self.assertIn("stopping behind this step", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, -signal.SIGINT)

    def test_a_checkpoint_folder_is_one_run_s_at_a_time(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        process, folder = self.started("run", plan, "--steps", 5000)
        self.refused(1, "run", plan, "--steps", 3, "--checkpoint-dir", folder,
                     says=[folder, f"process {process.pid} on", "name another folder"])
        process.kill()  # its lock ends with it, and what it has left half-written is cleared away
        process.communicate()
        (folder / "checkpoint.plumb.aBcDeF.tmp").write_text("half")
        self.done("run", plan, "--steps", 2, "--checkpoint-dir", folder)
        self.assertEqual([path.name for path in folder.iterdir()], ["checkpoint.plumb"])

    def test_the_initial_weights_are_a_checkpoint(self):
        plan = self.cpu_plan("pp=2,mbs=1,schedule=1f1b")
        folder = self.folder / "state"
        self.assertEqual(self.json("run", plan, "--steps", 0, "--checkpoint-dir", folder)["losses"], [])
        rest = self.json("run", plan, "--steps", 3, "--checkpoint-dir", folder, "--resume")
        self.assertEqual((rest["first_step"], rest["losses"]), (0, self.json("run", plan, "--steps", 3)["losses"]))
        self.refused(2, "run", plan, "--steps", 0, says=["--steps 0", "--checkpoint-dir"])
        self.refused(2, "validate", plan, "--steps", 0, says=["--steps"])

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
        self.refused(2, "run", plan, "--offload", 1, says=["--schedule"])

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
        self.refused(2, "run", "mlp", says=["--schedule"])
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
        self.assertRegex(beyond.stdout, r"^(FAIL|DISTURBED): a step of .* more than 0 %")
        self.assertIn("measured", beyond.stdout)  # the answer stands all the same
        self.refused(2, "run", says=["plan file"])
        self.refused(1, "run", "alexnett", "--schedule", "1f1b", "-p", 2, "-m", 4, says=['did you mean "alexnet"'])
        self.refused(1, "simulate", *costs, "--burst-kib", -3, says=["a burst of -3072 bytes", "give 0 for none"])
        self.refused(2, "run", "--backend", "timed", "--schedule", "1f1b", "-p", 2, "-m", 2, says=["--costs"])
        self.refused(2, "run", self.cpu_plan("pp=2,mbs=1"), "--slow", "rank=0:0.5", says=["--backend timed"])
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
        self.refused(2, "calibrate", "--only", "collectives", "-o", self.folder / "c.json", says=["--output"])
        self.refused(2, "calibrate", says=["--output"])

    def test_what_the_backend_cannot_run_is_refused(self):
        self.refused(1, "run", self.llama_plan(), says=["GiB together", "this machine has"])
        plan = self.cpu_plan("pp=2,mbs=1")
        self.refused(1, "run", plan, "--text", self.write("short.txt", "too short"), says=["short.txt", "9 bytes", "longer text"])
        self.refused(2, "run", plan, "--backend", "abacus")
        for verb, options in (("run", ("--board", self.folder, "--rank", 0)), ("validate", ("--gpus", "each")), ("run", ("--cuda-graph",))):
            self.refused(2, verb, plan, *options, says=["--backend cuda"])
        shared = self.cpu_plan("cp=2,tp=2,sp=1,zero=0,mbs=1", devices=4)  # 3 heads a tensor rank
        self.refused(1, "run", shared, "--context", "ulysses", says=["3 heads", "2 context ranks"])


if __name__ == "__main__":
    run_cases()

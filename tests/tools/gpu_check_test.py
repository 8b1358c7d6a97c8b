"""Checks tools/gpu_check with a made-up GPU and tool: exit statuses, the form of its JSON, time limits, kept results.

usage: gpu_check_test.py"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gpu_check"
GPU = '{"index": 0, "name": "NVIDIA H100 80GB HBM3", "driver_cuda": "13.0"}'
SMI = "#!/bin/sh\necho '0, NVIDIA H100 80GB HBM3, 81559 MiB, 580.65, 9.0, 1980 MHz, 700.00 W, 00000000:18:00.0'\n"
NO_DEVICES = "#!/bin/sh\necho 'No devices were found'\nexit 6\n"
# Writes what -o and --trace name, answers validate in JSON, hangs for gpipe and fails for zb-v.
TOOL = """#!/bin/sh
case "$*" in
  *"--only gpus"*) [ -n "$PLAYED_GPUS" ] || { echo "plumb: there is no GPU here that CUDA can use (made up)" >&2; exit 1; }
    echo "{\\"gpus\\": [$PLAYED_GPUS]}"; exit 0 ;;
  *validate*gpipe*) echo "step 1 of 10" >&2; sleep 60 & wait ;;
  *validate*zb-v*) echo "rank 1, action 3: made up" >&2; exit 1 ;;
esac
for word in "$@"; do
  if [ "$before" = -o ] || [ "$before" = --trace ]; then echo '{}' > "$word"; fi
  before="$word"
done
case "$*" in *--json*) echo '{"error_pct": 1.5}' ;; *) echo plumb 0 ;; esac
"""


# A tool that trains: plans are their layouts.
NCCL_TOOL = """#!/bin/sh
case "$*" in
  *"--only gpus"*) [ -n "$PLAYED_GPUS" ] || { echo "plumb: there is no GPU here that CUDA can use (made up)" >&2; exit 1; }
    echo "{\\"gpus\\": [$PLAYED_GPUS]}"; exit 0 ;;
  *--layout*) while [ $# -gt 0 ]; do [ "$1" = --layout ] && layout="$2"; [ "$1" = -o ] && echo "$layout" > "$2"; shift; done; exit 0 ;;
  *cuda*) case "$(cat "$2")" in
    *tp=2*) echo "plumb: tensor groups: set tp to 1, or use --backend cpu" >&2; exit 1 ;;
    *dp=2*) echo '{"losses": [2.5, 2.25]}'; exit 0 ;;
    esac
    case "$*" in *--rank*) [ "$NCCL_HOSTID" = "rank${*##*--rank }" ] || exit 1 ;; esac
    case "$*" in *"--rank 1"*) exit 0 ;; esac ;;
esac
echo '{"losses": [2.5, 2.0]}'
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "bin").mkdir()

    def program(self, name, text):
        path = self.root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def started(self, *arguments, gpus=1, script=SCRIPT, **more):
        environment = {**os.environ, "PATH": f"{self.root / 'bin'}:/usr/bin:/bin", "PLAYED_GPUS": ",".join([GPU] * gpus), **more}
        return subprocess.Popen([sys.executable, script, "-o", self.root / "out", *arguments], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def check(self, *arguments, **how):
        with self.started(*arguments, **how) as process:
            out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def report(self):
        return json.loads((self.root / "out" / "gpu_check.json").read_text())

    def test_without_a_gpu(self):
        self.program("nvidia-smi", NO_DEVICES)
        tool = self.program("plumb", TOOL)
        for arguments, reason in (([], "No devices were found"),
                                  (["--tool", tool], "plumb: there is no GPU here that CUDA can use (made up); nvidia-smi: "
                                   "No devices were found")):
            answer = self.check(*arguments, gpus=0)
            self.assertEqual(answer.returncode, 77)
            self.assertEqual(answer.stderr, f"there is no GPU to check: {reason}\n")
            self.assertFalse((self.root / "out").exists())

    def test_gpus_are_those_that_cuda_sees(self):
        """In a container, one GPU of several may be visible, and nvidia-smi may list others or be missing."""
        self.program("nvidia-smi", SMI + SMI.splitlines()[1].replace("0,", "1,", 1) + "\n")
        tool = self.program("plumb", TOOL)
        self.check("--tool", tool, "--only", "2 GPUs")
        self.assertEqual(self.report()["steps"], [])
        self.assertEqual(len(self.report()["gpus"]), 1)
        self.assertEqual(len(self.report()["nvidia_smi"]), 2)
        (self.root / "bin" / "nvidia-smi").write_text(NO_DEVICES)
        self.assertEqual(self.check("--tool", tool, "--only", "version").returncode, 0)
        self.assertEqual(self.report()["nvidia_smi"], "No devices were found")
        self.assertTrue(self.report()["is_measurement"])

    def test_gpus_that_are_hidden_are_said(self):
        self.program("nvidia-smi", SMI)
        answer = self.check("--tool", self.program("plumb", TOOL), gpus=0, CUDA_VISIBLE_DEVICES="3")
        self.assertEqual(answer.returncode, 77)
        self.assertTrue(answer.stderr.endswith('; CUDA_VISIBLE_DEVICES is "3", of 1 that nvidia-smi lists\n'), answer.stderr)

    def test_a_gpu_that_the_tool_cannot_use_is_a_fault(self):
        self.program("nvidia-smi", SMI)
        answer = self.check("--tool", self.program("plumb", TOOL), gpus=0)
        self.assertEqual(answer.returncode, 1)
        self.assertEqual(answer.stderr, "the tool cannot use a GPU: plumb: there is no GPU here that CUDA can use (made up)\n")
        (self.root / "bin" / "nvidia-smi").unlink()
        tool = self.program("plumb", '#!/bin/sh\necho "plumb: there is no libplumb_cuda.so beside the tool" >&2; exit 1\n')
        answer = self.check("--tool", tool)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("the tool cannot use a GPU: plumb: there is no libplumb_cuda.so beside the tool", answer.stderr)

    def test_what_an_earlier_run_has_left_is_no_result(self):
        (self.root / "out").mkdir()
        for name in ("gpu4.json", "zb-v-4.plan.json"):
            (self.root / "out" / name).write_text("old")
        tool = self.program("plumb", TOOL.replace("case", 'case "$*" in *"calibrate --backend"*) exit 1 ;; esac\ncase', 1))
        self.check("--tool", tool, "--only", "4 stages")
        steps = {step["name"]: step for step in self.report()["steps"]}
        self.assertEqual(steps["plan zb-v, 4 stages"]["why"], f"{self.root / 'out' / 'gpu4.json'} is not there "
                         '("kernels and calibration, 4 stages": failed)')

    def test_one_that_is_ended_leaves_a_report_and_nothing_that_runs(self):
        tool = self.program("plumb", TOOL.replace("sleep 60 &", 'echo $$ > "$0.new"; mv "$0.new" "$0.pid"; sleep 60 &'))
        with self.started("--tool", tool, "--only", "gpipe, 2 stages") as check:
            (self.root / "out").mkdir(exist_ok=True)
            (self.root / "out" / "gpu2.json").write_text("{}")  # a step that --only leaves out makes it
            pid = self.root / "bin" / "plumb.pid"
            while check.poll() is None and not pid.exists():
                time.sleep(0.02)
            check.terminate()
            self.assertEqual(check.wait(timeout=20), 143)
        self.assertEqual(self.report()["status"], "ended")
        stat = pathlib.Path(f"/proc/{int(pid.read_text())}/stat")
        self.assertTrue(not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] in "ZX")

    def test_a_tool_that_does_not_build_says_why(self):
        """The build is set up anew the next time."""
        self.program("nvidia-smi", SMI)
        source = self.root / "source"
        (source / "tools").mkdir(parents=True)
        (source / "meson.build").touch()
        shutil.copy(SCRIPT, source / "tools")
        self.program("nvcc", "#!/bin/sh\n")
        self.program("meson", '#!/bin/sh\nmkdir -p "$2"; echo "no Boost" >&2; exit 1\n')
        self.program("ninja", '#!/bin/sh\necho "this is not reached"; exit 1\n')
        for _ in range(2):
            answer = self.check(script=source / "tools" / "gpu_check")
            self.assertEqual(answer.returncode, 1)
            self.assertIn("the tool does not build: no Boost;", answer.stderr)

    def test_without_nccl_its_steps_are_skipped(self):
        for reason in ("there is no libnccl.so.2 here: install NCCL", "libplumb_cuda.so was built without NCCL"):
            script = TOOL.replace("  *validate*gpipe*", f'  *"--only nccl"*|*run*cuda*) echo "plumb: {reason}" >&2; exit 1 ;;\n'
                                  '  *run*) echo \'{"losses": [2.5]}\'; exit 0 ;;\n  *validate*gpipe*', 1)
            tool = self.program("plumb", script)
            for only, count in (("nccl collectives", 1), ("NCCL", 2)):
                self.check("--tool", tool, "--only", only, gpus=2)
                self.assertEqual(len(self.report()["steps"]), count)
                for step in self.report()["steps"]:
                    self.assertEqual(step["status"], "skipped", step)
                    self.assertIn(reason, step["why"])

    def test_what_is_not_installed_is_skipped(self):
        tool = self.program("plumb", TOOL)
        self.check("--tool", tool, "--full", "--only", "compute-sanitizer")
        self.assertEqual({step["status"] for step in self.report()["steps"]}, {"skipped"})

    def test_results_that_cannot_be_written(self):
        tool = self.program("plumb", TOOL)
        (self.root / "out").write_text("a file")
        answer = self.check("--tool", tool)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("name another folder with -o", answer.stderr)

    def test_steps_and_their_report(self):
        self.program("nvidia-smi", SMI)
        tool = self.program("plumb", TOOL)
        answer = self.check("--tool", tool, "--limit", "1", "--only", "2 stages")
        self.assertEqual(answer.returncode, 1, answer.stderr)
        report = self.report()
        self.assertEqual(report["status"], "failed")
        self.assertEqual(report["gpus"][0]["name"], "NVIDIA H100 80GB HBM3")
        self.assertEqual(report["nvidia_smi"][0]["driver_version"], "580.65")
        steps = {step["name"]: step for step in report["steps"]}
        self.assertEqual(len(steps), 13)  # calibration, and a plan and a validation of six schedules
        for step in steps.values():
            self.assertEqual(set(step), {"name", "command", "limit_s", "status", "seconds", "exit", "answer", "why"})
        self.assertEqual(steps["validate 1f1b, 2 stages"]["answer"], {"error_pct": 1.5})
        self.assertEqual(steps["validate gpipe, 2 stages"]["status"], "timed out")
        self.assertEqual(steps["validate gpipe, 2 stages"]["why"], "it was ended after 1 s; its last words: step 1 of 10")
        self.assertIn("11 passed, 1 timed out, 1 failed\n", answer.stdout)
        self.assertEqual(steps["validate zb-v, 2 stages"]["why"], "rank 1, action 3: made up")
        self.assertEqual(steps["validate pipedream, 2 stages"]["status"], "passed")  # it runs after those that failed
        self.assertTrue((self.root / "out" / "1f1b-2.trace.json").exists())

    def test_several_gpus_are_checked_together(self):
        tool = self.program("plumb", TOOL)
        self.check("--tool", tool, "--only", "2 GPUs", gpus=2)
        self.assertEqual([step["name"] for step in self.report()["steps"]],
                         ["NCCL layouts of 2 GPUs", "calibration of 2 GPUs", "plan 1f1b, 2 GPUs", "validate 1f1b, 2 GPUs", "plan zb-h1, 2 GPUs", "validate zb-h1, 2 GPUs",
                          "plan replicas, 2 GPUs", "validate replicas, 2 GPUs"])

    def nccl_check(self, tool, *arguments):
        answer = subprocess.run([sys.executable, SCRIPT.parent / "nccl_check", tool, "-o", self.root / "nccl", *arguments],
                                capture_output=True, text=True, timeout=100)
        return answer.returncode, {row["layout"]: row for row in json.loads(answer.stdout)}

    def test_ranks_on_one_gpu_are_held_against_the_cpu(self):
        """The tool's ranks need a host id each and answer on rank 0; its losses are wrong for replicas."""
        tool = self.program("plumb", NCCL_TOOL)
        code, rows = self.nccl_check(tool, "--one-gpu")
        self.assertEqual(code, 1)
        self.assertEqual([row["status"] for row in rows.values()], ["passed", "failed"])
        self.assertIn("of the cpu [2.5, 2.0]", list(rows.values())[1]["why"])

    def test_layouts_that_the_backend_refuses_are_no_faults(self):
        tool = self.program("plumb", NCCL_TOOL)
        code, rows = self.nccl_check(tool, "--gpus", "2", "--quick")
        self.assertEqual([row["status"] for row in rows.values()], ["passed", "failed"])
        code, rows = self.nccl_check(tool, "--gpus", "2")
        self.assertEqual(code, 1)
        self.assertEqual(rows["dp=1,tp=2,pp=1,mbs=1,schedule=1f1b"]["status"], "refused")
        self.assertEqual(rows["dp=1,tp=1,pp=2,mbs=1,schedule=zb-v,v=2"]["status"], "passed")
        self.assertEqual(rows["dp=2,tp=1,pp=1,mbs=1,zero=1,schedule=1f1b"]["status"], "failed")

    def test_what_time_is_left_for(self):
        self.program("nvidia-smi", SMI)
        tool = self.program("plumb", TOOL)
        self.check("--tool", tool, "--total", "6", "--only", "validate")
        statuses = {step["why"] for step in self.report()["steps"]}
        self.assertEqual(statuses, {str(self.root / "out" / f"{name}.plan.json") + " is not there"
                                    for name in [f"{s}-{r}" for r in (2, 4) for s in
                                                 ("1f1b", "interleaved", "gpipe", "zb-h1", "zb-v", "pipedream")] +
                                    ["gpt2-1f1b-1", "llama-3.2-1b-1f1b-1", "gpt2-medium-1f1b-4", "gpt2-medium-zb-h1-4"]})
        answer = self.check("--tool", tool, "--total", "0", "--only", "version")
        self.assertEqual(answer.returncode, 1)
        self.assertEqual(self.report()["steps"][0]["why"], "the time for all steps was over")

    def test_a_tool_that_is_not_there(self):
        self.program("nvidia-smi", SMI)
        answer = self.check("--tool", self.root / "nothing")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("is not there", answer.stderr)

    def test_the_quick_steps_are_a_few_of_all(self):
        every, quick = self.check("--list").stdout, self.check("--list", "--quick").stdout
        for part in ("suite gpu", "validate 1f1b, 2 stages", "validate zb-v, 2 stages", "as a graph", "nccl collectives"):
            self.assertIn(part, quick)
        for part in ("4 stages", "gpipe", "llama-3.2-1b"):
            self.assertIn(part, every)
            self.assertNotIn(part, quick)
        self.assertIn("--budget 2 ", quick)
        self.assertIn("--budget 3.0 ", self.check("--list", "--quick", "--budget", "3").stdout)

    def test_the_list(self):
        answer = self.check("--list")
        self.assertEqual(answer.returncode, 0)
        for part in ("suite gpu", "validate zb-h1, 4 stages", "nccl collectives", "compute-sanitizer memcheck"):
            self.assertIn(part, answer.stdout)


if __name__ == "__main__":
    unittest.main()

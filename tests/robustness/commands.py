"""The table of commands with the answers that they must give.

Case(command, code, says, ...) is a line of bash in a folder of its own, where `plumb` is the tool. `says` are words
that its answer (stdout and stderr) must have, `never` are words that it must not have, and `files` are written first:
{name: text}. `seconds` is a generous budget for a slow machine with other work, not a measurement.
"""
import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Case:
    command: str
    code: int
    says: tuple = ()
    never: tuple = ()
    files: dict = dataclasses.field(default_factory=dict)
    seconds: int = 60


def profile(nodes):
    """Returns a chain in PipeDream's form."""
    node = "node{} -- L -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=4\n"
    return "".join(node.format(i) for i in range(nodes)) + "".join(f"\tnode{i} -- node{i + 1}\n" for i in range(nodes - 1))


def graph(nodes):
    """Returns a chain of linear layers."""
    chain = [{"op": "linear", "name": f"l{i}", "out": 8} for i in range(nodes)]
    return json.dumps({"name": "chain", "nodes": [{"op": "input", "shape": [8]}, *chain]})


def schedule(**stage):
    return json.dumps({"name": "x", "microbatches": 1, "stages": [{"rank": 0, "model_part": 0, **stage}], "ranks": ["0F0 0B0"]})


ONE_LAYOUT = "--layout tp=1,pp=2,mbs=1,zero=0,recompute=none,schedule=1f1b"

# Limits are checked before work. A value that is too large is refused at once, with the limit, the value and the
# remedy. A large value that may be meant is answered in time.
BOUNDS = [
    Case("plumb plan llama-3-8b h100:16 --global-batch 1000000000000", 2, ("--global-batch 1000000000000", "at most 16777216")),
    Case("plumb plan llama-3-8b h100:16 --global-batch 4294967296", 2, ("--global-batch 4294967296", "at most 16777216")),
    Case("plumb plan llama-3-8b h100:16 --global-batch 128 --seq 1000000000000", 2, ("--seq 1000000000000", "at most 268435456")),
    Case("plumb plan llama-3-8b h100:16 --global-batch 16777216", 0, ("choices of degrees and micro-batch",), seconds=120),
    Case("plumb plan llama-3-8b h100:16 --global-batch 720720", 0, ("choices of degrees and micro-batch",), seconds=120),
    Case("plumb plan llama-3-8b h100:100000 --global-batch 100000", 0, ("choices of degrees and micro-batch",), seconds=120),
    Case("ulimit -v 1000000; plumb plan gpt3-175b a100:512 --global-batch 1536 --space wide --threads 1", 0,
         ("choices of degrees and micro-batch",), ("too many to look at",), seconds=300),
    Case("plumb plan llama-3-8b h100:720720 --global-batch 720720", 1, ("720720 devices", "at most 262144")),
    Case("plumb partition llama-3-8b h100:8 --global-batch 9223372036854775807 --seq 128", 2, ("beyond what can be counted",),
         ("-1 micro-batches",)),
    Case("plumb partition llama-3-8b h100:8 --global-batch 4294967293 --seq 128", 2, ("at most 16777216",), ("-3 micro-batches",)),
    Case("plumb schedule check s.json", 1, ("model_part", "1000000000", "at most 1000000"),
         files={"s.json": schedule(model_part=1000000000)}),
    Case("plumb schedule check s.json", 1, ("model part 0 of lane 0 has no stage",), files={"s.json": schedule(model_part=1000000)}),
    Case("plumb schedule check s.json", 1, ("lane", "at most 1000000"), files={"s.json": schedule(lane=2000000000)}),
    Case("plumb schedule check s.json", 1, ("microbatches", "at most 16777216"),
         files={"s.json": schedule().replace('"microbatches": 1', '"microbatches": 4294967297')}),
    Case("plumb schedule check s.txt", 1, ("0/1000000000/0", "no place of a stage"), files={"s.txt": "stages: 0/1000000000/0\n0F0 0B0\n"}),
    Case("plumb schedule check s.txt", 1, ("0/-1/0", "no place of a stage"), files={"s.txt": "stages: 0/-1/0\n0F0 0B0\n"}),
    Case("ln -s /dev/zero zero.json && plumb schedule check zero.json", 1, ("zero.json", "more than 1024 MiB"), seconds=120),
    Case("plumb simulate --schedule 1f1b -p 100000 -m 4 --costs f=1,b=2", 0, ("a step",), seconds=120),
    Case("plumb simulate --schedule chimera -p 20000 -m 4 --costs f=1,b=2", 0, ("a step",), seconds=120),
    Case("plumb schedule make 1f1b -p 2147483647 -m 2147483647", 1, ("2147483647", "fewer than 16777216")),
    Case("plumb simulate --schedule 1f1b -p 4 -m 8 --costs f=1,b=2 --noise cv=0.1,runs=100000000", 2,
         ("runs=100000000", "at most 1000000")),
    Case("plumb simulate --schedule 1f1b -p 1000 -m 1000 --costs f=1,b=2 --noise cv=0.1,runs=1000000", 1,
         ("1000000 runs", "at most", "runs")),
    Case("plumb partition g.json h100:8", 1, ("200001 nodes", "16384"), files={"g.json": graph(200_000)}),
    Case("plumb partition g.txt h100:64", 0, ("more ways to be cut", "% faster"), files={"g.txt": profile(200_000)}, seconds=120),
    Case("plumb partition g.txt h100:64", 1, ("g.txt:262145", "more than 262144 nodes"), files={"g.txt": profile(1_000_000)}, seconds=120),
    Case("plumb partition alexnet h100:8 --method 'type:.*.*.*.*.*.*.*.*z'", 1, ("no node has such a name",)),
    Case("plumb partition alexnet h100:8 --method 'type:(.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*)*z'", 1, ("no node has such a name",)),
    Case("plumb partition alexnet h100:8 --method 'type:((a{999}){999}){999}'", 2, ("too large a regular expression",)),
    Case("plumb partition alexnet h100:8 --method type:$(printf '(%.0s' {1..5000})", 2, ("5000 letters", "at most 1000")),
    Case("plumb partition alexnet h100:8 --method 'type:(?!conv)'", 2, ("--method type:(?!conv)", "no regular expression", "look-ahead")),
    Case("plumb run mlp --schedule 1f1b -p 2 -m 2 --split 'type:(.*.*.*.*.*.*.*.*.*.*.*.*z)'", 1, ("no layer of such a kind",)),
    Case("plumb run mlp --schedule 1f1b -p 2 -m 2 --replicas 1000000", 1, ("2000000 ranks", "1024 threads")),
    Case("plumb calibrate --ranks 100000 --budget 1 -o out.json", 1, ("100000 ranks", "1024 threads")),
    Case("plumb run mlp --schedule 1f1b -p 2 -m 2 --microbatch-size 1000000000", 2, ("--microbatch-size 1000000000", "at most 65536")),
    Case(f"plumb plan gpt-nano h100:2 --global-batch 4 {ONE_LAYOUT} -o p.json >plan.out && "
         "plumb whatif p.json --vary training.global_batch=$(seq -s, 1 1000) --vary training.seq=$(seq -s, 1 1000)", 2,
         ("more than 10000 rows",)),
]

TIMED = "--costs f=10,b=20,unit=ms"
FOUR = "plan llama-3-8b h100:16 --global-batch 64 --layout pp=4,tp=2,dp=2,mbs=1,recompute=none,schedule=1f1b,zero=0 -o p.json >/dev/null"
TOO_LONG = ("that can be simulated", "fewer micro-batches")

# Simulated time ends after some 106 days of picoseconds. A longer schedule is refused, and a shorter one is right.
TIMES = [
    Case("plumb simulate --schedule 1f1b -p 2 -m 1000000 --costs f=10,b=20", 1, TOO_LONG),
    Case("plumb simulate --schedule gpipe -p 4 -m 64 --costs f=1e5,b=2e5", 1, (*TOO_LONG, "B of stage 3")),
    Case("plumb simulate --schedule gpipe -p 4 -m 64 --costs f=1e5,b=2e5 --noise cv=0.1,runs=2", 1, TOO_LONG),
    Case("plumb simulate --schedule gpipe -p 4 -m 64 --costs f=1e5,b=2e5,mib=1,gb_per_s=1", 1, TOO_LONG),
    Case("plumb simulate --schedule gpipe -p 4 -m 64 --costs f=1e4,b=2e4 --json", 0, ('"makespan_s": 2010000',)),
    Case("plumb simulate --schedule gpipe -p 4 -m 64 --costs f=1,b=2 --slow rank=0:1e-7", 1, ("1e-07 of its speed",)),
    Case(f"plumb {FOUR}; plumb simulate p.json --slow rank=0:1e-7", 1, ("1e-07 of its speed",)),
    Case(f"plumb {FOUR}; plumb simulate p.json --degrade nic:node0=1e-15", 1, ("nic",)),
    Case("plumb schedule search zb-auto -p 4 -m 64 --costs f=1e5,i=1e5,w=1e5", 1, TOO_LONG),
    Case("plumb schedule search 1f1b -p 4 -m 64 --costs f=1e5,b=2e5", 1, TOO_LONG),
    Case("plumb simulate --schedule gpipe -p 4 -m 64 --costs f=1e300", 2, ("--costs: a f= of 1e+300 s", "cannot be simulated")),
    Case("plumb simulate --schedule gpipe -p 4 -m 64 --costs mib=1e300,gb_per_s=1", 2, ("--costs: mib=",)),
]

# A name means one preset, and a label is not varied.
NAMES = [
    Case("plumb models gpt3-13b", 0, ('"name": "gpt3-13b"',)),
    Case("plumb models gpt313b", 1, ("gpt3-1.3b", "gpt3-13b", "name one of them")),
    *(Case(f"plumb {FOUR}; plumb whatif p.json --vary {key}", 2, ("label changes no answer", "plumb plan"))
      for key in ("model.name=gpt2", "cluster.name=a100", "cluster.device.name=b200")),
]

# An option that is accepted changes the answer.
OPTIONS = [
    Case("plumb schedule make 1f1b -p 2 -m 2 --checkpoint always", 0, ("0R0 0B0",)),
    Case("plumb schedule make 1f1b -p 2 -m 2 -o s.txt && plumb schedule convert s.txt --checkpoint always", 0, ("0R0 0B0",)),
    Case("plumb schedule make forward-only -p 2 -m 2 --checkpoint always", 1, ("no backward",)),
    Case("plumb schedule make 1f1b -p 2 -m 2 --receives late", 2, ("--lowered",)),
    Case("plumb schedule make 1f1b -p 4 -m 8 --group 8", 1, ("1f1b has no group of micro-batches", "interleaved")),
    Case("plumb schedule show interleaved -p 4 -m 8", 0, ("(by default -v 1)",)),
    Case("plumb simulate --schedule 1f1b -p 2 -m 2 --global-batch 8", 2, ("--global-batch is of a model",)),
    Case("plumb plan llama-3-70b h100:8 --global-batch 8 --seq 4096", 0, ("the optimizer's state waits in the hosts' memory",)),
]

TRUNK = json.dumps({"nodes": [*(f"d{i}" for i in range(16)), "even", "odd"], "devices": [f"d{i}" for i in range(16)],
                    "links": [*({"from": f"d{i}", "to": ("even", "odd")[i % 2], "bandwidth_gb_per_s": 50, "latency_us": 2,
                                 "both_ways": True} for i in range(16)),
                              {"from": "even", "to": "odd", "bandwidth_gb_per_s": 3, "latency_us": 2, "both_ways": True}]})
ILL = ("plumb simulate llama-2-70b h100:16 --global-batch 64 --seq 4096 "
       "--layout pp=16,tp=1,dp=1,mbs=1,schedule=1f1b,zero=1,recompute=full --topology t.json")

# Sensitivities are printed where they can be known, and the critical path adds up to the step.
SENSITIVITIES = [
    Case(ILL, 0, ("no sensitivities: the step is ill-conditioned",), ("each 1 %",), {"t.json": TRUNK}),
    Case(f"{ILL} --json", 0, ('"sensitivity": null', '"is_ill": true'), files={"t.json": TRUNK}),
    Case(f"plumb {FOUR}; plumb simulate p.json --slow rank=3:0.8", 0, ("slow rank 3, at 0.8 of its speed", "of the critical path")),
    Case(f"plumb {FOUR}; plumb simulate p.json --slow rank=3:0.8 --json >s.json; python3 -c 'import json; s = json.load(open(\"s.json\")); "
         "print(round(sum(part[\"adds_s\"] for part in s[\"critical_path\"]) - s[\"makespan_s\"], 9))'", 0, ("0.0",)),
]

COLUMNS = "#  size  count  type  redop  root  time  algbw  busbw #wrong{}\n"
RANKS = "".join(f"#  Rank {rank:2} Group  0 Pid  9 on  node-0 device {rank:2} [0x1b] NVIDIA H100\n" for rank in range(8))


def nccl_log(redop, twice):
    """Returns an nccl-tests log, with times out of place and, if `twice`, in place."""
    times = "  {0:.2f}  1.0  1.7  0" * (2 if twice else 1)
    rows = "".join(f"{size} {size // 4} float {redop} -1 {times.format(30 + size / 2e5)}\n" for size in (1 << 16, 1 << 20, 1 << 24, 1 << 28))
    return RANKS + COLUMNS.format("  time  algbw  busbw #wrong" if twice else "") + rows + "# Avg bus bandwidth    : 100\n"


FROM = "plumb calibrate --from all_reduce_perf.log --base h100 -o x.json"
LLAMA_4 = json.dumps({"model_type": "llama4_text", "vocab_size": 1024, "hidden_size": 64, "intermediate_size": 128,
                      "intermediate_size_mlp": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
                      "num_local_experts": 4, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
                      "max_position_embeddings": 128, "hidden_act": "silu", "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
                      "moe_layers": [0, 3]})

READERS = [
    Case(FROM, 1, ("all_reduce_perf.log:", "redop is none"), files={"all_reduce_perf.log": nccl_log("none", True)}),
    Case(FROM, 0, files={"all_reduce_perf.log": nccl_log("sum", False)}),
    Case("plumb models config.json", 1, ("moe_layers", "experts in other layers than the last of each period"), ("set it",), {"config.json": LLAMA_4}),
    *(Case(f"plumb {kind} {name} >m.json && plumb {kind} ./m.json | cmp - m.json", 0)
      for kind, name in (("models", "gpt2"), ("models", "mixtral-8x7b"), ("clusters", "h100"), ("stacks", "megatron-core"))),
]

# No answer is lost in silence.
OUTPUT = [
    *(Case(f"plumb {words} >/dev/full", 1, ("the answer cannot be written to standard output (No space left on device)",))
      for words in ("schedule list", "models --json", "--help", "--version")),
    Case("plumb schedule list >&-", 1, ("standard output (Bad file descriptor)",)),
    Case("set -o pipefail; { sleep 0.2; plumb models --json; } | true", 1, ("standard output (Broken pipe)",)),
    Case("mkfifo f.json; cat f.json & plumb plan gpt-nano h100:2 --global-batch 4 -o f.json; wait; test -p f.json", 0, ('"plumb_version"',)),
    Case("plumb plan gpt-nano h100:2 --global-batch 4 -o /dev/stdout | cat", 0, ('"plumb_version"',)),
    Case("mkfifo f.txt; cat f.txt & plumb schedule make 1f1b -p 2 -m 2 -o f.txt; wait; test -p f.txt", 0, ("0F0",)),
    Case("ln -s there.txt link.txt; plumb schedule make 1f1b -p 2 -m 2 -o link.txt; test -L link.txt && cat there.txt", 0, ("0F0",)),
    Case("ln -s b.txt a.txt; ln -s a.txt b.txt; plumb schedule make 1f1b -p 2 -m 2 -o a.txt", 1, ("symbolic links lead to each other",)),
    Case("touch x.txt.aBcDeF.tmp; plumb schedule make 1f1b -p 2 -m 2 -o x.txt; ls", 0, ("x.txt",), (".tmp",)),
    # Without --foreground timeout signals its group as well, and the second signal stops the run at once.
    *(Case(f"timeout --foreground --preserve-status -s {signal} 3 plumb run --backend timed --schedule 1f1b -p 2 -m 4 {TIMED} --steps 100000", code,
           (f"SIG{signal} has ended this run",)) for signal, code in (("INT", 130), ("TERM", 143))),
]

SMALL_CLUSTER = json.dumps({"name": "c", "devices": 2, "device": {
    "name": "core", "peak_tflops": {"fp32": 0.05}, "memory_gib": 4, "reserved_gib": 0, "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5,
    "attention_efficiency": 0.5, "memory_efficiency": 0.5, "kernel_fixed_us": 5e-324, "compute_units": 1, "gemm_tile": 1},
    "node": {"devices": 2, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}})
ENDLESS = ("nan", "inf", "-inf", "1e999", "1e300")

# Numbers that are none, or too large, do not abort the tool.
ABORTS = [
    *(Case(f"plumb {words}", 1, ("1e999 is larger than any number",), files={name: text})
      for words, name, text in (("models m.json", "m.json", '{"layers": 1e999}'), ("clusters c.json", "c.json", '{"devices": 1e999}'),
                                ("stacks s.json", "s.json", '{"a": 1e999}'), ("simulate p.json", "p.json", '{"plan": 1e999}'),
                                ("schedule check s.json", "s.json", '{"microbatches": 1e999}'),
                                ("trace info t.json", "t.json", '[{"ph": "X", "ts": 1e999, "dur": 1}]'),
                                ("partition g.json h100:2", "g.json", '{"nodes": 1e999}'), ("score r.json", "r.json", '{"rows": 1e999}'))),
    Case("plumb clusters c.json", 1, ("device.kernel_fixed_us: 5e-324 is out of range",), files={"c.json": SMALL_CLUSTER}),
    *(Case(f"plumb validate --backend timed --schedule 1f1b -p 2 -m 4 {TIMED} --tolerance={number}", 2, ("--tolerance",)) for number in ENDLESS),
    *(Case(f"plumb run mlp --schedule 1f1b -p 2 -m 2 --watchdog={number}", 2, ("--watchdog",)) for number in ENDLESS),
    *(Case(f"plumb simulate --schedule 1f1b -p 2 -m 4 --costs f={number},b=1", 2, ("f=",)) for number in ("nan", "inf")),
]

# A refusal says what is wrong and what to do.
MESSAGES = [
    Case("plumb plan gpt2 h100:8 --global-batch 8k --layout dp=8,mbs=8", 0, ("8192",)),
    *(Case(f"plumb plan gpt2 h100:8 --global-batch {number}", 2, ("--global-batch",)) for number in ("1Q", "1.5", "-1", "0", "9999999999G")),
    Case("plumb paln", 2, ('did you mean "plan"?',)),
    Case("plumb plan gpt2 h100:8 --globalbatch 3", 2, ('did you mean "--global-batch"?',)),
    *(Case(f"plumb plan {word} h100:8 --global-batch 8", 1, never=("did you mean",)) for word in (".", "x", "/")),
    Case("plumb plan model.onnx h100:8 --global-batch 8", 1, ("there is no node",), ("did you mean",),
         {"model.onnx": "\b\u0007\u0012\u0007pytorch\u001a\u00052.1.0"}),
    Case("plumb plan t.json h100:8 --global-batch 8", 1, ("a Chrome trace",), files={"t.json": '{"traceEvents": []}'}),
    Case("plumb plan d.json h100:8 --global-batch 8", 1, ("a DeepSpeed config",),
         files={"d.json": '{"train_batch_size": 8, "zero_optimization": {"stage": 1}}'}),
    Case(f"plumb {FOUR}; plumb schedule check p.json", 1, ("a plan",)),
    Case(f"plumb {FOUR}; plumb calibrate --from p.json --base h100 -o x.json", 1, ("this is a plan, and a measurement is wanted",)),
    Case(f"plumb {FOUR}; plumb calibrate --from p.json --only topology --base h100 -o x.json", 1, ("this is a plan",)),
    Case("plumb plan gpt2 h100:8 --global-batch 8 --layout foo=1", 2, ("foo", "there is no such key: give one of")),
    Case("plumb schedule make 1f1b", 2, ("-p", "-m")),
    Case("plumb simulate --schedule 1f1b -p 2 -m 2 --costs q=1", 2, ("give one of f, i, w",)),
    Case("plumb plan gpt2 h100:8", 2, ("--global-batch is missing",)),
]

CASES = [*BOUNDS, *TIMES, *NAMES, *OPTIONS, *SENSITIVITIES, *READERS, *OUTPUT, *ABORTS, *MESSAGES]

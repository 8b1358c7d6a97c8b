"""The seeds are a good file of every kind that Plumb reads, each with the command that reads it.

A command is a line of bash in which `plumb` is the tool. The file stands in the folder that it runs in, and $SEEDS is a
folder with all seeds unchanged.
"""
import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Seed:
    name: str
    file: str
    command: str
    contents: object = None  # text or bytes; None: `made_by` writes the file
    made_by: str = ""


def as_json(value):
    return json.dumps(value, indent=1)


LAYOUT = "--layout tp=1,pp=2,dp=1,mbs=1,zero=0,recompute=none,schedule=1f1b"
QUESTION = f"--global-batch 4 --seq 64 --precision bf16 {LAYOUT}"

HUGGING_FACE = {"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
                "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "hidden_act": "silu",
                "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "rope_theta": 10000.0}

CPU = {"name": "cpu", "devices": 2,
       "device": {"name": "core", "peak_tflops": {"fp32": 0.05}, "memory_gib": 4, "reserved_gib": 0,
                  "memory_bandwidth_gb_per_s": 10, "gemm_efficiency": 0.5, "attention_efficiency": 0.5, "memory_efficiency": 0.5,
                  "kernel_fixed_us": 1, "compute_units": 1, "gemm_tile": 1},
       "node": {"devices": 2, "bandwidth_gb_per_s": 5, "efficiency": 1, "latency_us": 5}}

GRAPH = {"name": "tiny", "source": "made up", "sizes": {"classes": 10},
         "blocks": {"basic": {"parameters": ["width"], "nodes": [
             {"name": "conv", "op": "convolution", "filters": "$width", "kernel": 3, "padding": 1, "bias": False},
             {"name": "norm", "op": "batch_norm"}, {"op": "add", "inputs": ["norm", "@input"]}]}},
         "nodes": [{"name": "image", "op": "input", "shape": [8, 8, 3]},
                   {"name": "stem", "op": "convolution", "filters": 16, "kernel": 3, "padding": 1},
                   {"name": "stage", "block": "basic", "repeat": 2, "with": {"width": 16}},
                   {"op": "flatten"}, {"name": "head", "op": "linear", "out": "$classes"}, {"op": "loss"}]}

TOPOLOGY = {"nodes": ["a", "b", "switch"], "devices": ["a", "b"],
            "links": [{"from": "a", "to": "switch", "bandwidth_gb_per_s": 50, "latency_us": 2},
                      {"from": "b", "to": "switch", "bandwidth_gb_per_s": 50, "latency_us": 2, "both_ways": True}]}

MATRIX = ("\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tPIX\t0-55\t0\nGPU1\tNV18\t X \tSYS\t0-55\t0\n"
          "NIC0\tPIX\tSYS\t X \t\t\n\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n")

PIPEDREAM = ("node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0\n"
             "node2 -- Conv2d(3, 64) -- forward_compute_time=1.5, backward_compute_time=2.5, activation_size=[8.0; 4.0], "
             "parameter_size=4096\n"
             "node3 -- ReLU -- forward_compute_time=0.5, backward_compute_time=0.5, activation_size=8, parameter_size=0\n"
             "\tnode1 -- node2\n\tnode2 -- node3\n")

PIPER = {"maxDevices": 4, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 8,
         "nodes": [{"id": i, "name": f"n{i}", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 0.01, "memoryUsageA": 100,
                                                              "memoryUsageB": 400, "parameterSize": 200}]}}
                   for i in range(3)],
         "edges": [{"sourceId": i, "destId": i + 1, "communicationCost": 50} for i in range(2)]}

NCCL_LOG = ("# Collective test starting: all_reduce_perf\n" +
            "".join(f"#  Rank {rank:2} Group  0 Pid  9 on  node-0 device {rank:2} [0x1b] NVIDIA H100\n" for rank in range(8)) +
            "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n" +
            "".join(f"{size:12} {size // 4:12}  float  sum  -1  {30 + size / 2e5:.2f}  1.0  1.7  0  {30 + size / 2e5:.2f}  1.0  1.7  0\n"
                    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28)) + "# Avg bus bandwidth    : 100\n")

MEGATRON_LOG = "using world size: 16\n" + "".join(
    f" iteration {i:8}/      20 | consumed samples: {128 * i:12} | elapsed time per iteration (ms): {6100 + 10 * i}.0 | lm loss: 9 |\n"
    for i in range(1, 5)) + ("[Rank 0] (after 4 iterations) memory (MB) | allocated: 900.5 | max allocated: 2000.0 | "
                             "reserved: 2048.0 | max reserved: 2048.0\n")

TITAN_LOG = "".join(f"[titan] 2026-02-24 19:46:1{i},000 - root - INFO - step:  {i}  loss:  8.2  memory: 5.25GiB(28.5%)  "
                    f"tps: 10,73{i}  mfu: 1%\n" for i in range(1, 5))

ROW = {"id": "one", "source": {"repo": "VIA-Research/vTrain"}, "hardware": "A100-80GB SXM, 8 per node, 8x200Gb HDR",
       "model": {"name": "GPT 3.6B", "layers": 30, "hidden": 3072, "heads": 32, "ffn": 12288, "seq": 2048, "gated_mlp": False},
       "gpus": 64, "gpus_per_node": 8, "tp": 8, "pp": 1, "dp": 8, "mbs": 8, "gbs": 512, "zero": 0, "recompute": "full",
       "precision": "mixed fp16", "schedule": "1F1B", "measured": {"step_time_s": 5.0, "peak_mem_gib": 40.0}}

MAPPING = {"name": "mine", "cites": ["VIA-Research"], "limits": ["none"],
           "published": [{"who": "Calculon", "quantity": "step_time", "mean_pct": 15.3}],
           "clusters": [{"hardware": "A100", "cluster": "a100", "network_as_printed": True,
                         "set": {"network.bandwidth_gb_per_s": {"value": 12.5, "source": "a page"}}}],
           "rules": [{"where": {"hardware": "SXM", "tp": 8}, "unless": {"hardware": "H100"},
                      "fill": {"stack": "megatron-core", "model.vocab": 51200}, "because": "it is"},
                     {"derive": {"model.kv_heads": [[1, "model.heads"]]}, "copy": {"seq": "model.seq"}},
                     {"where": {"kind": "ANALYTIC"}, "skip": "not measured"}]}

PART_COSTS = {
    "plumb_format": 1,
    "parts": [{"forward_s": 0.01, "input_grad_s": 0.02, "weight_grad_s": 0.01, "activation_bytes": 100,
               "released_at_input_grad_bytes": 40, "message_bytes": 50},
              {"forward_s": 0.01, "input_grad_s": 0.02, "weight_grad_s": 0.01, "recompute_s": 0.01, "activation_bytes": 100}],
    "embedding": {"forward_s": 0.001, "input_grad_s": 0, "weight_grad_s": 0.001},
    "head": {"forward_s": 0.004, "input_grad_s": 0.004, "weight_grad_s": 0.004, "activation_bytes": 80},
    "links": [{"latency_s": 1e-5, "bandwidth_gb_per_s": 25}],
    "max_activation_bytes": [400, 200]}
LINK = {"link": {"latency_us": 20, "rendezvous_us": 10, "eager_kib": 4, "bandwidth_gb_per_s": 1, "burst_kib": 0}}

TIMED_ROWS = {"meta": {}, "rows": [{"id": f"timed-{m}", "pp": 2, "n_microbatches": m, "schedule": "1F1B",
                                    "profiled_ms": {"TF": 10, "TB": 10, "TW": 10, "Tcomm": 0}, "source": {"repo": "x/y"},
                                    "measured": {"step_time_ms": 31 * (m + 1)}} for m in (4, 6)] + [
    {"id": f"ar-{size}", "collective": "all_reduce", "gpus": 8, "nodes": 1, "bytes": size << 20, "hardware": "8xH100-SXM",
     "measured": {"busbw_GBps": 300 + size}, "source": {"repo": "x/y"}} for size in (64, 256)]}

OWN_RUN = {"title": "a run", "date": "2026-01-01", "load": "idle", "steps": 3,
           "step_time": {"predicted_s": 1.0, "measured_s": 1.1}, "fastest_step_s": 1.0, "slowest_step_s": 1.2,
           "step_time_interval": {"low_s": 1.0, "high_s": 1.2, "confidence_ratio": 0.95}}

TEXT = "name: mine\nmicrobatches: 2\nstages: 0/0/0 1/1/0\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"
CSV = "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n"

MODEL = "plumb models gpt2 | sed -z 's/,\\n *\"parameters\": [0-9]*//' >model.json"
PLAN = "plumb plan gpt-nano h100:2 --global-batch 4 -o plan.json"

SEEDS = [
    Seed("model", "model.json", "plumb models model.json", made_by=MODEL),
    Seed("model in a plan", "model.json", f"plumb simulate model.json h100:2 {QUESTION}",
         made_by=MODEL),
    Seed("hugging face", "config.json", f"plumb simulate config.json h100:2 {QUESTION}", as_json(HUGGING_FACE)),
    Seed("cluster", "cluster.json", f"plumb simulate gpt-nano cluster.json:2 --global-batch 4 {LAYOUT}",
         made_by="plumb clusters h100 >cluster.json"),
    Seed("sites", "sites.json", "plumb simulate gpt-nano sites.json --global-batch 4 --layout pp=2,schedule=1f1b",
         made_by="plumb plan gpt-nano h100:1+a100:1@10 --global-batch 4 -o of-sites.json && "
                 "python3 -c 'import json; print(json.dumps(json.load(open(\"of-sites.json\"))[\"cluster\"]))' >sites.json"),
    Seed("small cluster", "cpu.json", f"plumb simulate gpt-nano cpu.json --global-batch 4 {LAYOUT}", as_json(CPU)),
    Seed("stack", "stack.json", f"plumb simulate gpt-nano h100:2 --stack ./stack.json --global-batch 4 {LAYOUT}",
         made_by="plumb stacks megatron-core >stack.json"),
    Seed("topology", "topology.json", f"plumb simulate gpt-nano h100:2 --global-batch 4 {LAYOUT} --topology topology.json",
         as_json(TOPOLOGY)),
    Seed("topology matrix", "topo.txt", "plumb calibrate --from topo.txt --only topology --base h100 -o out.json", MATRIX),
    Seed("plan", "plan.json", "plumb simulate plan.json", made_by=PLAN),
    Seed("plan of memory", "plan.json", "plumb memory plan.json --arena",
         made_by=PLAN),
    Seed("plan varied", "plan.json", "plumb whatif plan.json --vary training.seq=64,128",
         made_by=PLAN),
    Seed("schedule text", "s.txt", "plumb schedule check s.txt", TEXT),
    Seed("schedule csv", "s.csv", "plumb schedule check s.csv", CSV),
    Seed("schedule csv, lenient", "s.csv", "plumb schedule check --lenient s.csv", CSV),
    Seed("schedule json", "s.json", "plumb schedule check s.json", made_by="plumb schedule make zb-h1 -p 3 -m 4 -o s.json"),
    Seed("schedule simulated", "s.txt", "plumb simulate --schedule s.txt --costs f=1,i=1,w=1,c=0.1",
         made_by="plumb schedule make chimera -p 2 -m 4 --lowered -o s.txt"),
    Seed("schedule drawn", "s.txt", "plumb schedule show s.txt", TEXT),
    Seed("layer graph", "graph.json", "plumb partition graph.json h100:2", as_json(GRAPH)),
    Seed("profile of PipeDream", "graph.txt", "plumb partition graph.txt v100:2", PIPEDREAM),
    Seed("input of Piper", "piper.json", "plumb partition piper.json v100:2", as_json(PIPER)),
    Seed("trace", "trace.json", "plumb trace info trace.json",
         made_by="plumb simulate --schedule 1f1b -p 2 -m 3 --costs f=1,b=2,c=0.1 --trace trace.json"),
    Seed("log of nccl-tests", "ar.log", "plumb calibrate --from ar.log --base h100 -o out.json", NCCL_LOG),
    Seed("table of products", "gemm.csv", "plumb calibrate --from gemm.csv --base h100 -o out.json",
         "# measured\nm,n,k,layout,us\n4096,4096,4096,TN,230\n8192,8192,8192,NN,1800\n1024,1024,1024,NT,12\n"),
    Seed("log of Megatron-LM", "megatron.log",
         "plumb calibrate --from megatron.log --plan $SEEDS/llama.json --base h100:16 -o out.json", MEGATRON_LOG,
         made_by="plumb plan llama-3-8b h100:16 --global-batch 128 -o llama.json"),
    Seed("log of torchtitan", "titan.log", "plumb calibrate --from titan.log --plan $SEEDS/llama.json --base h100:16 -o out.json",
         TITAN_LOG),
    Seed("published row", "rows.json", "plumb score rows.json", as_json({"meta": {}, "rows": [ROW]})),
    Seed("timed rows", "timed.json", "plumb score timed.json", as_json(TIMED_ROWS)),
    Seed("mapping", "mapping.json", "plumb score $SEEDS/rows.json --mapping mapping.json", as_json(MAPPING)),
    Seed("own runs", "runs.json", "plumb score $SEEDS/rows.json --runs runs.json -o page.md", as_json([OWN_RUN])),
    Seed("link", "link.json",
         "plumb validate --backend timed --schedule 1f1b -p 2 -m 2 --costs f=0.1,b=0.1,mib=0.001,gb_per_s=1,unit=ms --link link.json "
         "--steps 1", as_json(LINK)),
    Seed("checkpoint", "checkpoint.plumb",
         "mkdir kept && mv checkpoint.plumb kept && plumb run $SEEDS/cpu.plan.json --steps 2 --checkpoint-dir kept --resume",
         made_by=f"plumb plan gpt-nano ./cpu.json --global-batch 4 --seq 16 {LAYOUT} -o cpu.plan.json && "
                 "plumb run cpu.plan.json --steps 1 --checkpoint-dir . "),
    Seed("costs", "costs", 'plumb simulate --schedule zb-h1 -p 2 -m 4 --costs "$(cat costs)"',
         "f=1:2,i=1,w=1,c=0.1,r=0.5,o=1,unit=ms"),
    Seed("costs by part", "costs.json", "plumb schedule search 1f1b -p 2 -m 4 --effort 1000 --costs costs.json", as_json(PART_COSTS)),
    Seed("noise", "noise", 'plumb simulate --schedule 1f1b -p 2 -m 4 --costs f=1,b=2 --noise "$(cat noise)"',
         "cv=0.05,rank_cv=0.01,comm_cv=0.1,dist=gamma,runs=20,seed=3"),
    Seed("layout", "layout", 'plumb simulate gpt-nano h100:4 --global-batch 8 --layout "$(cat layout)"',
         "dp=2,tp=1,pp=2,v=1,zero=1,sp=0,mbs=2,recompute=full,schedule=1f1b"),
    Seed("split", "split", 'plumb plan gpt2 h100:4 --global-batch 8 --seq 64 --layout pp=4,mbs=1 --split "$(cat split)"', "2,4,4,2"),
    Seed("slow rank and link", "slow",
         'read -r rank link <slow; plumb simulate $SEEDS/plan.json --slow "$rank" --degrade "$link"', "rank=1:0.8 nvlink:rank0=0.5\n"),
    Seed("variation", "vary", 'plumb whatif $SEEDS/plan.json --vary "$(cat vary)"', "network.bandwidth_gb_per_s=25,50"),
    Seed("break-even", "range",
         'plumb whatif $SEEDS/plan.json --vary layout.zero=0,1 --break-even "$(cat range)"', "network.bandwidth_gb_per_s=25.0..50"),
    Seed("figure set", "set", 'plumb score $SEEDS/rows.json --set "$(cat set)"', "cluster.device.gemm_efficiency=0.7"),
    Seed("row chosen", "only", 'plumb score $SEEDS/rows.json --only "$(cat only)"', "model.name=^gpt.*[0-9]+"),
    Seed("images", "images.bin", "plumb run alexnet-32 --schedule gpipe -p 2 -m 2 --steps 1 --images images.bin",
         b"".join(bytes([label]) + bytes(3072) for label in range(10))),
]

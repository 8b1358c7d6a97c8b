"""The table: a command, and what it must answer.

Case(command, code, says, ...) is a line of bash in a folder of its own, where `plumb` is the tool. `says` are words of its answer
(stdout and stderr), `never` words that it must not have, `files` what is written first: {name: text}. `seconds` is generous: the
budget of a slow machine that does other things as well, not a measurement.
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
    """A chain in PipeDream's form."""
    node = "node{} -- L -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=4\n"
    return "".join(node.format(i) for i in range(nodes)) + "".join(f"\tnode{i} -- node{i + 1}\n" for i in range(nodes - 1))


def graph(nodes):
    """A chain of linear layers."""
    chain = [{"op": "linear", "name": f"l{i}", "out": 8} for i in range(nodes)]
    return json.dumps({"name": "chain", "nodes": [{"op": "input", "shape": [8]}, *chain]})


def schedule(**stage):
    return json.dumps({"name": "x", "microbatches": 1, "stages": [{"rank": 0, "model_part": 0, **stage}], "ranks": ["0F0 0B0"]})


ONE_LAYOUT = "--layout tp=1,pp=2,mbs=1,zero=0,recompute=none,schedule=1f1b"

# Bounds before work: what is too much is refused at once, with the limit, the value and the remedy; what is large but could be
# meant is answered in time.
BOUNDS = [
    Case("plumb plan llama-3-8b h100:16 --global-batch 1000000000000", 1, ("--global-batch 1000000000000", "at most 16777216")),
    Case("plumb plan llama-3-8b h100:16 --global-batch 4294967296", 1, ("--global-batch 4294967296", "at most 16777216")),
    Case("plumb plan llama-3-8b h100:16 --global-batch 128 --seq 1000000000000", 1, ("--seq 1000000000000", "at most 268435456")),
    Case("plumb plan llama-3-8b h100:16 --global-batch 16777216", 0, ("layouts considered",), seconds=120),
    Case("plumb plan llama-3-8b h100:16 --global-batch 720720", 0, ("layouts considered",), seconds=120),
    Case("plumb plan llama-3-8b h100:100000 --global-batch 100000", 0, ("layouts considered",), seconds=120),
    Case("plumb plan llama-3-8b h100:720720 --global-batch 720720", 1, ("720720 devices", "at most 262144")),
    Case("plumb partition llama-3-8b h100:8 --global-batch 9223372036854775807 --seq 128", 1, ("at most 16777216",),
         ("-1 micro-batches",)),
    Case("plumb partition llama-3-8b h100:8 --global-batch 4294967293 --seq 128", 1, ("at most 16777216",), ("-3 micro-batches",)),
    Case("plumb schedule check s.json", 1, ("model_part", "1000000000", "at most 1000000"),
         files={"s.json": schedule(model_part=1000000000)}),
    Case("plumb schedule check s.json", 1, ("model part 0 of lane 0 has no stage",), files={"s.json": schedule(model_part=1000000)}),
    Case("plumb schedule check s.json", 1, ("lane", "at most 1000000"), files={"s.json": schedule(lane=2000000000)}),
    Case("plumb schedule check s.json", 1, ("microbatches", "at most 16777216"),
         files={"s.json": schedule().replace('"microbatches": 1', '"microbatches": 4294967297')}),
    Case("plumb schedule check s.txt", 1, ("0/1000000000/0", "no place of a stage"), files={"s.txt": "stages: 0/1000000000/0\n0F0 0B0\n"}),
    Case("plumb schedule check s.txt", 1, ("0/-1/0", "no place of a stage"), files={"s.txt": "stages: 0/-1/0\n0F0 0B0\n"}),
    Case("ln -s /dev/zero zero.json && plumb schedule check zero.json", 1, ("zero.json", "more than 1024 MiB"), seconds=120),
    Case("plumb simulate --schedule 1f1b -p 100000 -m 4 --costs f=1,b=2", 0, ("makespan",), seconds=120),
    Case("plumb simulate --schedule chimera -p 20000 -m 4 --costs f=1,b=2", 0, ("makespan",), seconds=120),
    Case("plumb schedule make 1f1b -p 2147483647 -m 2147483647", 1, ("2147483647", "fewer than 16777216")),
    Case("plumb simulate --schedule 1f1b -p 4 -m 8 --costs f=1,b=2 --noise cv=0.1,runs=100000000", 1,
         ("runs=100000000", "at most 1000000")),
    Case("plumb simulate --schedule 1f1b -p 1000 -m 1000 --costs f=1,b=2 --noise cv=0.1,runs=1000000", 1,
         ("1000000 runs", "at most", "runs")),
    Case("plumb partition g.json h100:8", 1, ("200001 nodes", "16384"), files={"g.json": graph(200_000)}),
    Case("plumb partition g.txt h100:64", 1, ("200000 nodes on 64 devices", "smaller cluster"), files={"g.txt": profile(200_000)}),
    Case("plumb partition alexnet h100:8 --method 'type:.*.*.*.*.*.*.*.*z'", 1, ("no node has such a name",)),
    Case("plumb partition alexnet h100:8 --method 'type:(.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*)*z'", 1, ("no node has such a name",)),
    Case("plumb partition alexnet h100:8 --method 'type:((a{999}){999}){999}'", 1, ("too large a regular expression",)),
    Case("plumb partition alexnet h100:8 --method type:$(printf '(%.0s' {1..5000})", 1, ("5000 letters", "at most 1000")),
    Case("plumb partition alexnet h100:8 --method 'type:(?!conv)'", 1, ("no regular expression", "look-ahead")),
    Case("plumb run mlp --schedule 1f1b -p 2 -m 2 --split 'type:(.*.*.*.*.*.*.*.*.*.*.*.*z)'", 1, ("no layer of such a kind",)),
    Case("plumb run mlp --schedule 1f1b -p 2 -m 2 --replicas 1000000", 1, ("2000000 ranks", "1024 threads")),
    Case("plumb run mlp --schedule 1f1b -p 2 -m 2 --microbatch-size 1000000000", 1, ("--microbatch-size 1000000000", "at most 65536")),
    Case(f"plumb plan gpt-nano h100:2 --global-batch 4 {ONE_LAYOUT} -o p.json >plan.out && "
         "plumb whatif p.json --vary training.global_batch=$(seq -s, 1 1000) --vary training.seq=$(seq -s, 1 1000)", 1,
         ("more than 10000 rows",)),
]

CASES = BOUNDS

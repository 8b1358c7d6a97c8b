#pragma once
// The arguments of the verbs, as command_line/ has read them. No file has been opened yet.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace tools {

struct PresetArguments {
  std::string name;  ///< empty: all presets are listed
  bool json = false;
};

/// The name of Plumb's own executor among stacks.
inline constexpr std::string_view kOwnExecutor = "plumb";

/// A question to the planner: model and cluster by preset or file, the training, and the fixed keys of the layout.
struct QuestionArguments {
  std::string model;
  std::string cluster;  ///< `plan`: or several, with | between them
  std::int64_t global_batch = 0;
  std::int64_t sequence = 0;  ///< 0: the model's own
  std::string precision;      ///< empty: bf16, or fp32 where the device has nothing else; `plan`: or several, bf16|fp8
  std::string fp8_recipe;     ///< of the stack; empty: its default
  std::string stack;          ///< a preset, a file or kOwnExecutor; empty: that of each layout is assumed
  std::string optimizer;      ///< empty: adamw; `plan`: or several, adamw|lion
  std::string layout;         ///< dp=2,tp=4|8,..., a file of keys, or FILE,dp=2
  std::string split;          ///< 8,8,10,6 or Megatron's Et*8|t*8|t*10|t*6L
  /// Share of a predicted peak that a search keeps free besides; nothing: the stack's own.
  std::optional<double> headroom;
  std::string space = "usual";  ///< "usual" or "wide"
};

/// The measure that `plan` makes best, and the settings among which it does.
struct AimArguments {
  std::string objective = "time";  ///< time, cost, energy, robust or devices
  std::string front;               ///< memory or devices, against the step's time; empty: none
  std::string devices;             ///< numbers of devices that are tried, 8|16|32; empty: as the objective has it
  std::string noise;               ///< of robust: cv=0.05,runs=1000,...
  double tokens = 0;               ///< of devices: tokens of the training
  double deadline_days = 0;        ///< of devices
  double price_usd = 0;            ///< of a device's hour; 0: the cluster's own
  std::string power;               ///< watts of a device, IDLE:BUSY; empty: the cluster's own
  double pue = 0;                  ///< 0: the cluster's own
};

struct PlanArguments {
  QuestionArguments question;
  AimArguments aim;
  int top = 5;
  std::int64_t effort = 0;      ///< steps after which the search stops; 0: it ends by itself
  double time_limit_s = 0;      ///< seconds; 0: none
  int threads = 0;              ///< of the search; 0: one for each core
  bool explain = false;         ///< say what other values of each key cost
  std::string family;           ///< of --explain: fixed keys, whose layouts are listed one by one; empty: none
  bool searches_order = false;  ///< the best layout's order is searched for its own costs
  std::string output;
  std::string html;
  bool json = false;
};

/// The tokens, days, money and devices of a training that are given, and what interrupts it.
struct BudgetArguments {
  std::string plan;  ///< a plan file, or a model whose cluster is in `question`
  QuestionArguments question;
  AimArguments aim;                  ///< devices, tokens, deadline_days, price_usd, power and pue
  double money_usd = 0;              ///< 0: not given, as below
  bool weak = false;                 ///< the batch grows with the devices
  std::string failures = "llama-3";  ///< a preset of tools/specs/reliability, a file, or none
  double mtbf_hours = 0;             ///< of one device, in place of the preset's components
  double restart_minutes = 0;        ///< in place of the preset's, as below
  double repair_hours = 0;
  double storage_gb_per_s = 0;    ///< of a node
  double checkpoint_minutes = 0;  ///< work between checkpoints; 0: the best interval
  std::uint64_t seed = 1;         ///< of the simulated interruptions
  bool json = false;
};

struct PartitionArguments {
  QuestionArguments question;      ///< `model` may be a measured graph (inputs/measured_input.h)
  std::string method = "time";     ///< time, parameters, uniform, type:REGEX
  std::string levels;              ///< "4:12.5e9,2:1.25e9": machines of a measured graph in place of a cluster
  double memory_bytes = 0;         ///< of a device for a measured graph; 0: the cluster's
  std::int64_t microbatches = 0;   ///< of a batch of Piper's inputs; 0: the file's
  bool as_pipedream = false;       ///< a measured graph's stages are chosen as PipeDream's optimizer does
  bool memory_constraint = false;  ///< PipeDream's --use_memory_constraint
  bool fewer_machines = false;     ///< PipeDream's --use_fewer_machines
  double compression_ratio = 0;    ///< PipeDream's --activation_compression_ratio; 0: not given
  bool straight = false;           ///< a measured graph's stages have no copies
  std::string output;              ///< file for the plan; empty: none
  bool meshes = false;             ///< stages have meshes of their own, and nodes are sharded over them
  int groups = 0;                  ///< with `meshes`: groups of layers that stages are made of; 0: as many as are quick
  bool json = false;
};

/// A schedule by name and numbers, or by file.
struct ScheduleArguments {
  std::string name;  ///< a name of the catalogue, or a file
  int ranks = 0;
  int microbatches = 0;
  int chunks = 0;  ///< 0: not given, which means one
  int group = 0;
  int slices = 1;
  int batch = 0;
  int node_ranks = 0;
  bool vertical_sync = false;
  double memory_ratio = 1;
  std::string checkpoint = "never";   ///< when lowered: never, except_last, always
  std::string lowering = "plumb";     ///< plumb, pytorch, pytorch-deferred
  std::optional<int> offload;         ///< activations that a rank keeps; the others wait in host memory
  std::optional<int> offload_stages;  ///< stages of a rank whose activations all wait in host memory
  std::optional<int> shard;           ///< when lowered: parameters are sharded, and so many stages stay gathered
  bool prefetch = false;              ///< with `shard`: stages are gathered one run of actions ahead
  bool replicas = false;              ///< when lowered: gradients are reduced over replicas
  std::string receives = "early";     ///< when lowered: an action ahead of the consumer (early), or next to it (late)
  bool lenient = false;               ///< a CSV is read as PyTorch's parser reads it
};

struct NetworkArguments {
  std::string links = "shared";      ///< "shared", or "private": each transfer has links of its own
  bool unfolded = false;             ///< every replica is simulated, also where all are alike
  std::vector<std::string> slow;     ///< rank=17:0.8
  std::vector<std::string> degrade;  ///< nic:node3=0.5, nvlink:rank17=0.5
  std::string topology;              ///< a file of nodes and links, instead of the cluster's own fabric
};

struct SimulateArguments {
  std::string plan;            ///< a plan file; or
  QuestionArguments question;  ///< a model on a cluster with a layout; or
  ScheduleArguments schedule;  ///< a schedule
  std::string costs;           ///< with `schedule`
  NetworkArguments network;
  std::string sends = "buffered";
  double burst_kib = 0;  ///< with `schedule`: bytes that pass a rank's idle network card at once
  std::string noise;     ///< cv=0.05,runs=1000,...; empty: none
  std::string meshes;    ///< meshes of the pipeline ranks, "tp2,dp2"; empty: the layout's
  std::string reshard;   ///< with `meshes`: direct, all-gather, broadcast; empty: the fastest
  std::string trace;
  std::string html;
  bool draw = false;
  bool verbose = false;  ///< each rank, the critical path and all sensitivities
  bool json = false;
};

/// The options of `schedule search` besides those of a schedule.
struct SearchArguments {
  std::string objective = "span";  ///< span, makespan
  std::string placement;           ///< a name of placements(); empty: the schedule's, or any without one
  double released_at_input_grad_ratio = 0;
  std::int64_t timed_actions = 0;       ///< 0: the search's own
  std::optional<double> limit_seconds;  ///< nothing: none
  std::int64_t solver_nodes = 0;        ///< of an integer solver; 0: none is asked
  bool curve = false;                   ///< time against memory in place of one order
  std::string svg;                      ///< with `curve`: a file to draw it to
};

struct ScheduleVerbArguments {
  ScheduleArguments schedule;  ///< search: without a name, any order is sought
  SearchArguments search;
  std::string output;
  std::string costs;                 ///< show, search: the costs of the drawing, or of the question
  std::string sends = "buffered";    ///< check
  std::vector<int> max_activations;  ///< check, search: most of a rank; none, one for all, or one a rank
  std::string certificate;           ///< search: a file to write; check: a file to verify
  std::string html;                  ///< search
  bool lowered = false;
  bool json = false;
};

struct MemoryArguments {
  std::string plan;            ///< a plan file, or the model of
  QuestionArguments question;  ///< a model on a cluster
  bool arena = false;          ///< also print the arena that is planned for a device
  bool json = false;
};

struct WhatifArguments {
  std::string plan;               ///< as of MemoryArguments
  QuestionArguments question;     ///< likewise
  std::vector<std::string> vary;  ///< KEY=a,b,c
  std::string break_even;         ///< KEY=LOW..HIGH: where two plans change places; empty: not asked
  bool replan = false;
  std::string csv;
  std::string svg;
  std::string html;
  bool json = false;
};

/// A run that was measured, beside its plan.
struct CompareArguments {
  std::string plan;
  std::vector<std::string> files;  ///< the log that the run printed, or profiles of its ranks
  std::string html;
  bool json = false;
};

struct ExportArguments {
  std::string plan;
  std::string target;  ///< the trainer (inputs/target_input.h)
  std::string output;
  std::string slurm;  ///< file of the script that starts it
  bool json = false;
};

struct ImportArguments {
  std::string file;
  std::string target;          ///< empty: told by the file
  QuestionArguments question;  ///< what the file leaves open
  int devices = 0;             ///< 0: as the file says
  std::string output;
  bool json = false;
};

struct ScoreArguments {
  std::vector<std::string> files;
  std::vector<std::string> set;       ///< cluster.PATH=VALUE or stack.PATH=VALUE, in every preset
  std::vector<std::string> fit;       ///< PATH=LOW,HIGH
  std::string holdout;                ///< empty: "model" for a fit, and nothing is left out otherwise
  bool general_rules = false;         ///< rows are read by the general mapping alone
  bool assume_default = false;        ///< rows are read by no mapping: what they print is what a user types
  std::string error_bars;             ///< with `holdout` each-...: the fitted intervals are written there
  std::vector<std::string> only;      ///< FIELD=EXPRESSION that rows must meet
  std::vector<std::string> tables;    ///< files of measured products
  std::vector<std::string> mappings;  ///< files that say how sources are read, before the built-in ones
  std::vector<std::string> runs;      ///< files of validate's answers
  int worst = 0;                      ///< rows to list, in descending order of their errors
  std::string output;                 ///< a report in Markdown
  std::string svg;
  std::string html;
  bool json = false;
};

/// How the ranks of a run share GPUs, or meet on several machines (--backend cuda).
struct CudaArguments {
  std::string sms = "even";  ///< how ranks share the SMs of one GPU: even, all, or a share each (3,1)
  bool graph = false;        ///< a step is captured, and launched as a whole
  std::string gpus;          ///< "one" for all ranks, "each" for one each; empty: as many as there are
  std::string board;         ///< folder where ranks that are processes meet, instead of by MPI
  int rank = -1;             ///< with `board`: the rank of this process
};

/// Ranks that wait instead of computing (--backend timed).
struct TimedArguments {
  std::string costs;              ///< costs of one chunk, with a schedule by name
  std::vector<std::string> slow;  ///< rank=3:0.8
  double burst_kib = 0;           ///< bytes that pass a rank's idle network card at once
  double shrink = 1;              ///< bytes and bandwidths are divided by it
  std::string sends = "buffered";
};

struct TrainingArguments {
  std::string text;  ///< file to train on; empty: the built-in text
  std::uint64_t seed = 1;
  std::string context = "ring";    ///< attention over context ranks: "ring" or "ulysses"
  double clip_norm = 0;            ///< 0: gradients are not clipped
  bool offload_optimizer = false;  ///< its state is in the host's memory
};

/// Pipeline ranks that are meshes of different shape.
struct MeshArguments {
  std::string meshes;   ///< the mesh of each pipeline rank, tp2,dp2; empty: all alike, as the plan says
  std::string reshard;  ///< messages between meshes: direct, all-gather (also if empty), broadcast
};

/// The arguments that `run` and `validate` share: the work, the hardware and the training.
struct ReplayArguments {
  std::string plan;            ///< a plan file, or for `run` a network's name
  ScheduleArguments schedule;  ///< instead of the plan's own, if it has a name; backend timed: with timed.costs
  std::string backend = "cpu";
  CudaArguments cuda;
  TimedArguments timed;
  TrainingArguments training;
  MeshArguments ranks;
  std::string link;          ///< a measured network (calibrate --only transport) that predictions hop over
  double watchdog_s = 60;    ///< a run fails if nothing moves for so long
  std::optional<int> steps;  ///< nothing: the verb's default; run: 0 writes the initial weights
  std::string trace;
  bool json = false;
};

/// A network (layer_models.h) that is run without a plan.
struct LayerModelArguments {
  std::string split = "uniform";  ///< tools/runs/layer_split.h
  std::string images;             ///< a file in CIFAR-10's binary form; empty: made-up samples
  bool normalise = false;         ///< the images are normalised
  std::int64_t microbatch = 1;    ///< samples of a micro-batch
  int replicas = 1;
};

/// The activations and the state that a rank keeps.
struct StateArguments {
  int recompute_every = 0;          ///< layers of which one keeps its input; 0: as the plan says
  bool zero_layerwise = false;      ///< ZeRO 2 and 3 move gradients and weights layer by layer
  std::string zero_by = "element";  ///< unit that ZeRO divides: "element" or "layer"
};

struct CheckpointArguments {
  std::string folder;  ///< empty: no checkpoints
  int every = 0;       ///< steps between checkpoints; 0: one behind the last step
  bool resume = false;
};

struct RunArguments {
  ReplayArguments replay;
  LayerModelArguments layer_model;
  StateArguments state;
  CheckpointArguments checkpoint;
  bool baseline = false;  ///< the model is trained on one rank too
};

struct ValidateArguments {
  ReplayArguments replay;
  std::string svg;  ///< the prediction above the measurement
  std::string html;
  std::string output;                   ///< the prediction, written before the first step
  std::string lanes;                    ///< a Chrome trace with both, rank by rank
  int repeat = 1;                       ///< runs, each from the beginning, whose steps are taken together
  double recalibrate_s = 0;             ///< backend cpu: seconds of measuring before predicting; 0: none
  std::optional<double> tolerance_pct;  ///< of the verdict; given: exit 1 if it is FAIL or DISTURBED
  bool verbose = false;                 ///< each operation, rank and cause
};

struct CalibrateArguments {
  std::string backend = "cpu";
  std::string only;  ///< "collectives" (a table), "transport" (a file for `link`); empty: all that a cluster needs
  int ranks = 0;     ///< ranks that work at once; 0: one a core, 4 for collectives, 1 for a GPU, all for GPUs
  std::string precision = "bf16";  ///< backend cuda: precision that kernels compute in
  std::string sms = "even";        ///< backend cuda: CudaArguments::sms
  std::string gpus;  ///< backend cuda: "one" that ranks share (also if empty), or "each", NCCL between them
  double budget_s = 20;
  std::vector<std::string> from;  ///< measurements to fit instead of measuring: logs and tables
  std::string base;               ///< with `from`, messages, NCCL: the cluster that they were measured on
  std::string plan;               ///< with `from`: the plan that the training logs ran
  std::string output;
  bool json = false;
};

struct TraceArguments {
  std::string file;
  bool json = false;
};

/// Two timelines of one schedule.
struct TraceCompareArguments {
  std::string first;
  std::string second;
  bool json = false;
};

}}  // namespace plumb::tools

#pragma once
// All inputs of a run, with nothing about how they were found: the layers of each stage, the process grid, the lowered
// schedule, precision, optimizer and data. tools/runs/lower_plan.h makes a RunSpec from a plan.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/spec/data/sample_data.h"
#include "executor/spec/division/context_division.h"
#include "executor/spec/division/rank_grid.h"
#include "executor/spec/division/resharding_pieces.h"
#include "kernels/half_format.h"
#include "kernels/layer.h"
#include "kernels/optimizer.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

struct TrainingState;  // executor/parameters/training_state.h

/// The micro-batches whose activations are computed again (Huang et al. 2019 leave out the last).
enum class RebuildWhich : std::uint8_t {
  kAll,
  kListed,  ///< micro-batches whose R the schedule lists for the stage
};

/// How the copies of a stage shard its state: by element, with reduce-scatter and all-gather, or by whole layers, with
/// a reduce to each owner and a broadcast from it.
enum class ShardBy : std::uint8_t { kElement, kLayer };

struct RunSpec {
  std::vector<std::vector<Layer>> stage_layers;  ///< [stage]; concatenated by model_part they are the model
  ProcessGrid grid;                              ///< the cpu backend uses pipeline, data, tensor, context and expert
  /// [pipeline rank] Meshes that differ in shape (division/rank_grid.h); empty: all alike.
  std::vector<StageMesh> meshes;
  Resharding resharding = Resharding::kAllGather;  ///< how messages go between meshes of different shape
  bool sequence_parallel = false;  ///< norms and residuals on 1/t of the tokens, in a tensor group of t > 1
  ContextAttention context_attention = ContextAttention::kRing;
  Schedule schedule;  ///< lowered; one step (or, if asynchronous, one run between flushes)
  Sends sends = Sends::kBuffered;
  Recompute rebuild = Recompute::kNone;
  RebuildWhich rebuild_which = RebuildWhich::kAll;
  int rebuild_layers = 1;       ///< layers of a group for Recompute::kFull
  std::int64_t microbatch = 1;  ///< sequences, or samples, of a micro-batch
  std::int64_t sequence = 0;    ///< tokens of a sequence; 1 where samples are not sequences
  OptimizerSettings optimizer;
  /// Weights are stored in this 16-bit format beside an fp32 master copy, and fp16's loss is scaled; none: fp32.
  std::optional<HalfFormat> half;
  double clip_norm = 0;  ///< largest norm of the whole gradient; 0: not clipped
  int zero = 0;          ///< ZeRO stage, which the schedule was lowered for
  /// Replicas, times context ranks, that share the state of a stage, so that several groups of them each hold all of it
  /// (HSDP: Zhao et al. 2023, section 3.2.2); 0: all of them share it.
  int shard = 0;
  ShardBy shard_by = ShardBy::kElement;
  /// ZeRO 2 and 3 reduce gradients and gather weights layer by layer inside F, B, I and W, and the schedule's
  /// REDUCE_GRADs, UNSHARDs and RESHARDs have nothing left to do.
  bool layerwise = false;
  bool offload_optimizer = false;  ///< optimizer state lives in host memory, and updates are made there
  /// [stage][bucket] Layers of a gradient bucket, counted from the stage's last layer. Empty: as equal numbers as can
  /// be, in as many buckets as the stage's REDUCE_GRADs have parts.
  std::vector<std::vector<int>> bucket_layers;
  std::uint64_t seed = 1;                       ///< seed of the initial weights and of the order of the data
  std::vector<std::uint8_t> text;               ///< training text; each byte is a token
  std::string text_name = "the text";           ///< name of the text in error messages: its file
  SampleData samples;                           ///< training data where the model reads samples instead of text
  int steps = 1;                                ///< replays of the schedule in all, those before `resume` included
  std::shared_ptr<const TrainingState> resume;  ///< checkpoint to go on from; null: start at the beginning
  std::string resume_name = "the checkpoint";   ///< name of the checkpoint in error messages: its file
  std::string source;    ///< text that the spec was made from (a plan's): ranks that train together compare it
  Seconds watchdog{60};  ///< the run fails if nothing at all moves for that long
};

}}  // namespace plumb::executor

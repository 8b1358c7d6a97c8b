#pragma once
// Everything a run needs, and nothing about how it was found: the layers of each stage, the process grid, the lowered
// schedule, precision, optimizer and data. tools/runs/lower_plan.h makes one from a plan.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/data/sample_data.h"
#include "executor/division/context_division.h"
#include "executor/division/rank_grid.h"
#include "executor/division/resharding_pieces.h"
#include "kernels/half_format.h"
#include "kernels/layer/layer.h"
#include "kernels/optimizer.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

struct TrainingState;  // executor/training/training_state.h

/// What of a stage R, or the backward itself, computes again.
enum class Rebuild : std::uint8_t {
  kNothing,    ///< F keeps saved_tensors
  kSelective,  ///< F keeps them but for norm outputs and activations, which are cheap to have again
  kLayers,     ///< F keeps the input of every `rebuild_layers` layers only; a backward without R goes group by group
  kStage,      ///< F keeps the stage's input only
};

/// Which micro-batches are computed again (Huang et al. 2019 leave out the last).
enum class RebuildWhich : std::uint8_t {
  kAll,
  kListed,  ///< those whose R the schedule lists for the stage
};

/// How the copies of a stage divide its state: by element, moved by reduce-scatter and all-gather, or by whole layers,
/// moved by a reduce to, and a broadcast from, each owner.
enum class ShardBy : std::uint8_t { kElement, kLayer };

struct RunSpec {
  std::vector<std::vector<Layer>> stage_layers;    ///< [stage]; concatenated by model_part they are the model
  ProcessGrid grid;                                ///< the cpu backend: pipeline, data, tensor, context
  std::vector<StageMesh> meshes;                   ///< [pipeline rank] where they differ in shape (rank_grid.h)
  Resharding resharding = Resharding::kAllGather;  ///< of messages between these
  bool sequence_parallel = false;  ///< norms and residuals on 1/t of the tokens, in a tensor group of t > 1
  ContextAttention context_attention = ContextAttention::kRing;
  Schedule schedule;  ///< lowered; one step (or, if asynchronous, one run between flushes)
  Sends sends = Sends::kBuffered;
  Rebuild rebuild = Rebuild::kNothing;
  RebuildWhich rebuild_which = RebuildWhich::kAll;
  int rebuild_layers = 1;       ///< of Rebuild::kLayers
  std::int64_t microbatch = 1;  ///< sequences, or samples, of a micro-batch
  std::int64_t sequence = 0;    ///< tokens of a sequence; 1 where samples are no sequences
  OptimizerSettings optimizer;
  std::optional<HalfFormat>
      half;              ///< weights are stored in 16 bits beside an fp32 master copy, and fp16's loss is scaled
  double clip_norm = 0;  ///< of the whole gradient; 0: not clipped
  int zero = 0;          ///< ZeRO stage, which the schedule was lowered for
  ShardBy shard_by = ShardBy::kElement;
  bool layerwise = false;  ///< ZeRO 2 and 3 reduce gradients and gather weights layer by layer inside F, B, I and W,
                           ///< and the schedule's REDUCE_GRADs, UNSHARDs and RESHARDs have nothing left to do
  bool offload_optimizer = false;  ///< its state lives in the host's memory, and updates are made there
  /// [stage][bucket] layers of a gradient bucket, from the stage's last layer on; empty: as equal as can be, in as many
  /// buckets as the stage's REDUCE_GRADs have parts.
  std::vector<std::vector<int>> bucket_layers;
  std::uint64_t seed = 1;              ///< of the initial weights and of the order of the data
  std::vector<std::uint8_t> text;      ///< trained on byte by byte: a token is a byte
  std::string text_name = "the text";  ///< what messages call it: its file
  SampleData samples;                  ///< trained on where the model reads samples instead of text
  int steps = 1;                       ///< how many times the schedule is replayed, those before `resume` included
  std::shared_ptr<const TrainingState> resume;  ///< from where to go on; null: from the beginning
  std::string resume_name = "the checkpoint";   ///< what messages call it: its file
  std::string source;    ///< what the spec was made of (a plan's text): ranks that train together compare it
  Seconds watchdog{60};  ///< the run fails if nothing at all moves for that long
};

}}  // namespace plumb::executor

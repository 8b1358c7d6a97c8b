#include "executor/training/check_run_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "executor/parameters/optimizer_state.h"
#include "executor/parameters/training_state.h"
#include "executor/program/replay_plan.h"
#include "executor/spec/division/sequence_slice.h"
#include "executor/spec/division/tensor_division.h"
#include "executor/spec/require.h"
#include "executor/spec/run_shape.h"
#include "executor/training/check_model.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

const std::vector<Layer>& layers_of(const RunSpec& spec, std::size_t stage) {
  return spec.stage_layers[stage];
}

void check_numbers(const RunSpec& spec) {
  const ProcessGrid& grid = spec.grid;
  require(grid.data >= 1 && grid.pipeline >= 1 && grid.tensor >= 1 && grid.context >= 1 && grid.expert >= 1,
          "a grid has at least one replica, pipeline rank, tensor rank, context rank and expert rank");
  const int sharers = expert_tensor_ranks(grid), blocks = grid.tensor / sharers;
  require(grid.tensor % sharers == 0,
          fmt::format("{} ranks share an expert, which do not divide the {} tensor ranks; choose a degree that does",
                      sharers, grid.tensor));
  require(
      grid.data * grid.context * blocks % grid.expert == 0,
      fmt::format("{} expert ranks do not divide the {} replicas times {} context ranks{}; choose a degree that does",
                  grid.expert, grid.data, grid.context,
                  blocks > 1 ? fmt::format(" times {} groups of tensor ranks that share experts", blocks) : ""));
  require(spec.microbatch >= 1, fmt::format("a micro-batch of {} sequences: give at least 1", spec.microbatch));
  require(spec.sequence >= 1, fmt::format("sequences of {} tokens: give at least 1", spec.sequence));
  const int slices = ActionTable(spec.schedule).parts();
  require(spec.sequence >= slices,
          fmt::format("sequences of {} tokens cannot be cut into {} slices: give longer ones", spec.sequence, slices));
  require(spec.rebuild != Recompute::kFull || spec.rebuild_layers >= 1,
          fmt::format("recomputation of every {} layers: give at least 1", spec.rebuild_layers));
  require(spec.steps >= 0, fmt::format("{} steps: give 0 or more", spec.steps));
}

void check_meshes(const RunSpec& spec) {
  if (spec.meshes.empty()) return;
  require(static_cast<int>(spec.meshes.size()) == spec.grid.pipeline,
          fmt::format("meshes are given for {} pipeline ranks and there are {}: give each one", spec.meshes.size(),
                      spec.grid.pipeline));
  for (std::size_t rank = 0; rank < spec.meshes.size(); ++rank) {
    const StageMesh& mesh = spec.meshes[rank];
    require(
        mesh.data >= 1 && mesh.tensor >= 1,
        fmt::format("the mesh of pipeline rank {} has {} x {} ranks: give at least one", rank, mesh.data, mesh.tensor));
    require(mesh.data % spec.grid.data == 0,
            fmt::format("pipeline rank {} has {} replicas, which {} pipelines cannot share: give a multiple", rank,
                        mesh.data, spec.grid.data));
    const int parts = mesh.data / spec.grid.data;
    require(spec.microbatch % parts == 0,
            fmt::format("a micro-batch of {} sequences cannot be divided over the {} replicas of pipeline rank {}: "
                        "choose another micro-batch or mesh",
                        spec.microbatch, parts, rank));
  }
}

/// Requires an even number of values a token, since meshes of different shape cut messages between words, and a word
/// has two numbers in 16 bits.
void check_message_words(const RunSpec& spec) {
  if (spec.meshes.empty() || !spec.half) return;
  for (std::size_t stage = 0; stage < spec.stage_layers.size(); ++stage)
    require(input_elements(layers_of(spec, stage).front(), {.microbatch = 1, .sequence = 1}) % 2 == 0,
            fmt::format("stage {} takes an odd number of values a token, which meshes of different shape cannot divide "
                        "in 16 bits: train in fp32, or without --meshes",
                        stage));
}

void check_stages(const RunSpec& spec) {
  const std::vector<StagePlace>& stages = spec.schedule.stages;
  require(
      spec.stage_layers.size() == stages.size(),
      fmt::format("layers are given for {} stages and the schedule has {}", spec.stage_layers.size(), stages.size()));
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    require(!layers_of(spec, stage).empty(),
            fmt::format("stage {} has no layers: give each stage at least one", stage));
    const auto same_part = std::ranges::find(stages, stages[stage].model_part, &StagePlace::model_part);
    require(layers_of(spec, static_cast<std::size_t>(same_part - stages.begin())) == layers_of(spec, stage),
            fmt::format("stage {} is a copy of model part {} and has other layers", stage, stages[stage].model_part));
  }
}

std::vector<Layer> model_layers(const RunSpec& spec) {
  const std::vector<StagePlace>& stages = spec.schedule.stages;
  std::vector<Layer> model;
  for (int part = 0;; ++part) {
    const auto stage = std::ranges::find(stages, part, &StagePlace::model_part);
    if (stage == stages.end()) return model;
    const std::vector<Layer>& layers = layers_of(spec, static_cast<std::size_t>(stage - stages.begin()));
    model.insert(model.end(), layers.begin(), layers.end());
  }
}

/// Requires that the tensor ranks of its mesh, the expert ranks and the context ranks can divide each layer of a stage.
void check_layer_division(const RunSpec& spec) {
  const ContextSeat context{.ranks = spec.grid.context, .attention = spec.context_attention};
  const SequenceCut cut{.sequence = spec.sequence, .slices = ActionTable(spec.schedule).parts()};
  const RankGrid grid = rank_grid_of(spec);
  const std::vector<int> first = first_layers(spec);
  for (std::size_t stage = 0; stage < spec.stage_layers.size(); ++stage) {
    const int ranks = mesh_of(grid, spec.schedule.stages[stage].rank).tensor;
    for (std::size_t i = 0; i < layers_of(spec, stage).size(); ++i) {
      const std::size_t number = static_cast<std::size_t>(first[stage]) + i;
      const Layer& layer = layers_of(spec, stage)[i];
      const std::string why = why_not_divisible(layer, ranks, expert_tensor_ranks(spec.grid));
      require(why.empty(), fmt::format("layer {}: {}", number, why));
      const std::string why_not_experts = why_not_spread(layer, spec.grid.expert);
      require(why_not_experts.empty(), fmt::format("layer {}: {}", number, why_not_experts));
      const std::string why_not_context = why_not_shared(layer, cut, context, ranks);
      require(why_not_context.empty(), fmt::format("layer {}: {}", number, why_not_context));
    }
  }
}

/// Requires meshes of one shape for routed experts, which the ranks of one grid share, and no two tensor ranks that hold
/// the same experts: only copies of a whole stage sum gradients.
void check_experts(const RunSpec& spec) {
  const auto is_mixture = [](const Layer& layer) {
    const auto* block = std::get_if<TransformerLayer>(&layer);
    return block != nullptr && block->experts > 0;
  };
  if (std::ranges::none_of(model_layers(spec), is_mixture)) return;
  require(spec.meshes.empty(), "mixtures of experts do not go over meshes of different shapes: give all stages one");
  const int blocks = spec.grid.tensor / expert_tensor_ranks(spec.grid);
  require(spec.grid.expert % blocks == 0,
          fmt::format("{} expert ranks put the same experts on some of {} tensor ranks, {} of which share an expert; "
                      "choose a multiple of {}",
                      spec.grid.expert, spec.grid.tensor, expert_tensor_ranks(spec.grid), blocks));
}

/// Requires that `ranks` tensor ranks divide the tokens of each slice of a micro-batch, for sequence parallelism.
void check_token_division(const RunSpec& spec, int replicas, int ranks) {
  const int slices = ActionTable(spec.schedule).parts();
  if (!spec.sequence_parallel || ranks == 1) return;
  for (int slice = 0; slice < slices; ++slice) {
    const std::int64_t tokens =
        spec.microbatch / replicas * slice_tokens(spec.sequence, slices, slice).count / spec.grid.context;
    require(tokens % ranks == 0,
            fmt::format("a micro-batch{} of {} tokens cannot be divided over {} tensor ranks for sequence parallelism; "
                        "choose another length or micro-batch, or go without",
                        slices > 1 ? fmt::format("'s slice {}", slice) : "", tokens, ranks));
  }
}

int largest(const RankGrid& grid, int StageMesh::*degree) {
  return (*std::ranges::max_element(grid.meshes, {}, degree)).*degree;
}

void check_state(const RunSpec& spec) {
  require(spec.zero >= 0 && spec.zero <= 3, fmt::format("there is no ZeRO stage {}: give 0, 1, 2 or 3", spec.zero));
  require(spec.clip_norm >= 0, fmt::format("a clipping norm of {}: give one above 0, or 0 for none", spec.clip_norm));
  if (spec.half && spec.shard_by == ShardBy::kLayer && spec.zero > 0)
    for (const Layer& layer : model_layers(spec)) {
      std::int64_t elements = 0;
      for (const ParameterTensor& tensor : layer_parameters(layer)) elements += element_count(tensor);
      require(elements % 2 == 0,
              "a layer has an odd number of parameters, which do not fill whole words in 16 bits: divide state by "
              "element");
    }
  if (is_elementwise(spec.optimizer)) return;
  const std::string_view why = std::holds_alternative<AdamW8Bit>(spec.optimizer)
                                   ? "8-bit AdamW quantises blocks of a whole tensor"
                                   : "Adafactor sums rows and columns of a whole tensor";
  const RankGrid grid = rank_grid_of(spec);
  const int tensor = largest(grid, &StageMesh::tensor);
  require(spec.zero == 0 || (largest(grid, &StageMesh::data) * spec.grid.context == 1 && !has_copies(spec.schedule)),
          fmt::format("{}, and ZeRO {} would divide its state; use ZeRO stage 0, AdamW, SGD or Lion", why, spec.zero));
  require(tensor == 1,
          fmt::format("{}, which {} tensor ranks would divide; use one tensor rank, AdamW, SGD or Lion", why, tensor));
  require(spec.grid.expert == 1,
          fmt::format("{}, which {} expert ranks would divide; use one expert rank, AdamW, SGD or Lion", why,
                      spec.grid.expert));
}

/// Requires that groups of `shard` replicas can share the state.
void check_shard(const RunSpec& spec) {
  if (spec.shard == 0) return;
  const ProcessGrid& grid = spec.grid;
  require(spec.zero > 0,
          fmt::format("{} replicas share what ZeRO divides, and ZeRO stage 0 divides nothing; give stage "
                      "1, 2 or 3",
                      spec.shard));
  require(
      spec.shard >= 2 && grid.data * grid.context % spec.shard == 0,
      fmt::format("groups of {} cannot share state among {} replicas times {} context ranks; give a divisor above 1",
                  spec.shard, grid.data, grid.context));
  require(spec.meshes.empty(), "meshes of different shapes share state among all replicas: give all stages one");
  const int of_experts = grid.expert * expert_tensor_ranks(grid);
  require(spec.shard * grid.tensor % of_experts == 0,
          fmt::format("{} replicas of {} tensor ranks that share state do not hold whole groups of {} ranks with all "
                      "experts; give a multiple",
                      spec.shard, grid.tensor, of_experts));
}

void check_resume(const RunSpec& spec) {
  if (spec.resume == nullptr) return;
  require_same_training(*spec.resume, room_for_state(spec), spec.resume_name);
  if (spec.resume->steps >= spec.steps)
    throw InputError(fmt::format("{} has {} steps behind it, and {} are asked for: ask for more", spec.resume_name,
                                 spec.resume->steps, spec.steps));
}

void check_buckets(const RunSpec& spec) {
  const std::vector<std::vector<int>> buckets = bucket_layers(spec);
  for (std::size_t stage = 0; stage < buckets.size(); ++stage) {
    int layers = 0;
    for (const int count : buckets[stage]) {
      require(count >= 1, fmt::format("stage {} has {} gradient buckets and {} layers: give each bucket a layer", stage,
                                      buckets[stage].size(), layers_of(spec, stage).size()));
      layers += count;
    }
    require(layers == static_cast<int>(layers_of(spec, stage).size()),
            fmt::format("the gradient buckets of stage {} have {} layers, and the stage {}", stage, layers,
                        layers_of(spec, stage).size()));
  }
}

}  // namespace

void require_runnable(const RunSpec& spec) {
  check_numbers(spec);
  check_meshes(spec);
  check_stages(spec);
  check_message_words(spec);
  check_state(spec);
  check_shard(spec);
  check_buckets(spec);
  check_resume(spec);
  require_trainable(model_layers(spec), spec);
  check_layer_division(spec);
  check_experts(spec);
  const RankGrid grid = rank_grid_of(spec);
  for (std::size_t rank = 0; rank < grid.meshes.size(); ++rank)
    check_token_division(spec, parts_of_microbatch(grid, static_cast<int>(rank)), grid.meshes[rank].tensor);
}

}}  // namespace plumb::executor

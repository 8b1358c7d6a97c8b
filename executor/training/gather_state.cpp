#include "executor/training/gather_state.h"

#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/transport/communicator.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns [layer of the model] true if one of the rank's stages has it.
std::vector<bool> layers_of_rank(const RunSpec& spec, const TrainingPlan& plan, int world_rank) {
  const int pipeline = coordinates_of(plan.replay.grid, world_rank).pipeline;
  std::vector<bool> has;
  for (std::size_t stage = 0; stage < spec.stage_layers.size(); ++stage) {
    const auto first = static_cast<std::size_t>(plan.first_layer[stage]);
    has.resize(std::max(has.size(), first + spec.stage_layers[stage].size()));
    if (spec.schedule.stages[stage].rank != pipeline) continue;
    for (std::size_t i = 0; i < spec.stage_layers[stage].size(); ++i) has[first + i] = true;
  }
  return has;
}

/// Calls use(pointer to bytes, count) for everything that a parameter holds.
template <class Parameter, class Use>
void for_each_block(Parameter& parameter, Use use) {
  use(reinterpret_cast<const std::byte*>(parameter.weights.data()), parameter.weights.size() * sizeof(float));
  for (auto& field : parameter.fields) use(field.bytes.data(), field.bytes.size());
}

/// Returns a parameter as fp32 elements, the unit in which ranks exchange.
std::vector<float> packed(const SavedParameter& parameter) {
  std::size_t bytes = 0;
  for_each_block(parameter, [&](const std::byte*, std::size_t count) { bytes += count; });
  std::vector<float> values((bytes + sizeof(float) - 1) / sizeof(float));
  auto* to = reinterpret_cast<std::byte*>(values.data());
  for_each_block(parameter, [&](const std::byte* from, std::size_t count) {
    if (count > 0) std::memcpy(to, from, count);
    to += count;
  });
  return values;
}

void join_bits(std::byte* to, const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] |= from[i];
}

void join(SavedParameter& whole, const std::vector<float>& values) {
  const auto* from = reinterpret_cast<const std::byte*>(values.data());
  join_bits(reinterpret_cast<std::byte*>(whole.weights.data()), from, whole.weights.size() * sizeof(float));
  from += whole.weights.size() * sizeof(float);
  for (SavedField& field : whole.fields) {
    join_bits(field.bytes.data(), from, field.bytes.size());
    from += field.bytes.size();
  }
}

}  // namespace

TrainingState own_room_for_state(const RunSpec& spec, const TrainingPlan& plan, int world_rank) {
  TrainingState state = room_for_state(spec);
  const std::vector<bool> has = layers_of_rank(spec, plan, world_rank);
  for (std::size_t layer = 0; layer < has.size(); ++layer)
    if (!has[layer]) state.parameters[layer] = {};
  return state;
}

TrainingState gather_state(const RunSpec& spec, const TrainingPlan& plan, const TrainingState& own, int world_rank,
                           Transport& transport, const Clock& clock) {
  TrainingState whole;
  if (world_rank == 0) {
    whole = room_for_state(spec);
    whole.steps = own.steps;
    whole.updates = own.updates;
    whole.loss_scale = own.loss_scale;
    for (std::size_t layer = 0; layer < own.parameters.size(); ++layer)
      for (std::size_t i = 0; i < own.parameters[layer].size(); ++i)
        join(whole.parameters[layer][i], packed(own.parameters[layer][i]));
  }
  for (int other = 1; other < world_size(plan.replay.grid); ++other) {
    if (world_rank != 0 && world_rank != other) continue;
    Communicator pair(transport, {fmt::format("checkpoint of step {}", own.steps), {0, other}}, world_rank, clock);
    const TrainingState& mine = world_rank == 0 ? whole : own;
    const std::vector<bool> has = layers_of_rank(spec, plan, other);
    for (std::size_t layer = 0; layer < has.size(); ++layer) {
      if (!has[layer]) continue;
      for (std::size_t i = 0; i < mine.parameters[layer].size(); ++i) {
        std::vector<float> values = packed(mine.parameters[layer][i]);
        pair.run(broadcast(values, 1));
        if (world_rank == 0) join(whole.parameters[layer][i], values);
      }
    }
  }
  return whole;
}

}}  // namespace plumb::executor

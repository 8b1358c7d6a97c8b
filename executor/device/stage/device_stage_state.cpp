// A stage's part of a checkpoint: the same as the cpu backend's, so that a training can go from one to the other.

#include <algorithm>
#include <cstring>

#include "executor/device/stage/device_stage.h"
#include "executor/training/training_state.h"

namespace plumb {

/// Calls visit(the parameter's layer in the model, its number there, first element in own blocks, in the whole
/// parameter, count) for each run of elements for which this rank speaks.
template <class Visit>
void DeviceStage::for_each_own_run(Visit visit) const {
  for (const ParameterPiece& piece : pieces_in(places_, shares_.own())) {
    const PlacedParameter& parameter = places_.parameters[piece.parameter];
    for (const ElementRun& run : element_runs(model_layers_[parameter.layer], parameter.index, options_.tensor)) {
      const std::int64_t first = std::max(run.local, piece.first_in_tensor);
      const std::int64_t end = std::min(run.local + run.count, piece.first_in_tensor + piece.count);
      if (first < end)
        visit(static_cast<std::size_t>(options_.first_layer) + parameter.layer, parameter.index,
              piece.first_in_range + (first - piece.first_in_tensor), run.whole + (first - run.local), end - first);
    }
  }
}

/// The model's values of the stage's whole block: fp32, by `values(layer, parameter)`.
template <class Values>
std::vector<float> DeviceStage::block_of(Values values) const {
  std::vector<float> block = initial_weights();  // what pads a vocabulary stays as it began
  for (const PlacedParameter& parameter : places_.parameters)
    for (const ElementRun& run : element_runs(model_layers_[parameter.layer], parameter.index, options_.tensor)) {
      const float* whole = values(static_cast<std::size_t>(options_.first_layer) + parameter.layer, parameter.index);
      std::copy_n(whole + run.whole, run.count, block.begin() + parameter.first + run.local);
    }
  return block;
}

std::vector<float> DeviceStage::first_weights() const {
  if (options_.resume == nullptr) return initial_weights();
  return block_of([this](std::size_t layer, std::size_t parameter) {
    return options_.resume->parameters[layer][parameter].weights.data();
  });
}

void DeviceStage::restore_moments(DeviceMachine& machine) {
  if (options_.resume == nullptr) return;
  const ElementRange own = shares_.own();
  std::vector<float*> moments = {first_moment_};
  if (second_moment_ != nullptr) moments.push_back(second_moment_);
  for (std::size_t field = 0; field < moments.size(); ++field) {
    const std::vector<float> block = block_of([&](std::size_t layer, std::size_t parameter) {
      return reinterpret_cast<const float*>(options_.resume->parameters[layer][parameter].fields[field].bytes.data());
    });
    machine.upload(moments[field], std::as_bytes(std::span(block).subspan(static_cast<std::size_t>(own.first),
                                                                          static_cast<std::size_t>(own.count))));
  }
  updates_ = options_.resume->updates;
}

void DeviceStage::save(DeviceMachine& machine, TrainingState& state) const {
  state.updates = updates_;
  if (!shares_.speaks()) return;
  const auto downloaded = [&](const float* from) {
    std::vector<float> values(static_cast<std::size_t>(shares_.own().count));
    machine.download(std::as_writable_bytes(std::span(values)), from);
    return values;
  };
  std::vector<std::vector<float>> moments = {downloaded(first_moment_)};
  if (second_moment_ != nullptr) moments.push_back(downloaded(second_moment_));
  const std::vector<float> weights = downloaded(own_master());
  for_each_own_run([&](std::size_t layer, std::size_t index, std::int64_t own, std::int64_t whole, std::int64_t count) {
    SavedParameter& parameter = state.parameters[layer][index];
    std::copy_n(weights.begin() + own, count, parameter.weights.begin() + whole);
    for (std::size_t field = 0; field < moments.size(); ++field)
      std::memcpy(parameter.fields[field].bytes.data() + whole * std::int64_t{sizeof(float)},
                  moments[field].data() + own, static_cast<std::size_t>(count) * sizeof(float));
  });
}

}  // namespace plumb

// A block's values between replays: as a training begins, as tests read them, and its part of a checkpoint, the same
// as the cpu backend's, so that a training can go from one to the other.

#include <algorithm>
#include <cstring>

#include "executor/cpu/parameters/initial_weights.h"
#include "executor/cpu/parameters/optimizer_state.h"
#include "executor/device/stage/parameter_block.h"

namespace plumb { inline namespace executor {

namespace {

/// Of one parameter of the model, elements that this rank has.
struct OwnRun {
  std::size_t piece = 0;             // of the own elements
  std::int64_t first_in_piece = 0;   // element
  std::size_t layer = 0, index = 0;  // of the parameter in the model
  std::int64_t own = 0;              // first element in own blocks
  std::int64_t whole = 0;            // and in the parameter
  std::int64_t count = 0;
};

}  // namespace

std::vector<ElementRun> ParameterBlock::runs_of(const PlacedParameter& parameter) const {
  return element_runs(layers_[parameter.layer], parameter.index, options_.tensor, options_.experts);
}

/// Calls visit(OwnRun) for each of them.
template <class Visit>
void ParameterBlock::for_each_own_run(Visit visit) const {
  const std::vector<ParameterPiece> pieces = pieces_in(places_, shares_.own());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ParameterPiece& piece = pieces[i];
    const PlacedParameter& parameter = places_.parameters[piece.parameter];
    for (const ElementRun& run : runs_of(parameter)) {
      const ElementRun own = within(run, piece.first_in_tensor, piece.count);
      if (own.count > 0)
        visit(OwnRun{.piece = i,
                     .first_in_piece = own.local - piece.first_in_tensor,
                     .layer = static_cast<std::size_t>(options_.first_layer) + parameter.layer,
                     .index = parameter.index,
                     .own = piece.first_in_range + (own.local - piece.first_in_tensor),
                     .whole = own.whole,
                     .count = own.count});
    }
  }
}

std::vector<float> ParameterBlock::initial_weights() const {
  std::vector<float> weights(static_cast<std::size_t>(elements()));
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const ElementRange range = range_of(i);
    fill_initial_weights(
        std::span(weights).subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count)),
        layers_[i], options_.first_layer + static_cast<int>(i), options_.seed, options_.tensor, options_.part,
        options_.experts);
  }
  return weights;
}

/// The model's values of the whole block: fp32, by `values(layer, parameter)`.
template <class Values>
std::vector<float> ParameterBlock::block_of(Values values) const {
  std::vector<float> block = initial_weights();  // what pads a vocabulary stays as it began
  for (const PlacedParameter& parameter : places_.parameters)
    for (const ElementRun& run : runs_of(parameter)) {
      const float* whole = values(static_cast<std::size_t>(options_.first_layer) + parameter.layer, parameter.index);
      std::copy_n(whole + run.whole, run.count, block.begin() + parameter.first + run.local);
    }
  return block;
}

std::vector<float> ParameterBlock::first_weights() const {
  if (options_.resume == nullptr) return initial_weights();
  return block_of([this](std::size_t layer, std::size_t parameter) {
    return options_.resume->parameters[layer][parameter].weights.data();
  });
}

/// Of own elements.
std::vector<float> ParameterBlock::downloaded(DeviceMachine& machine, const float* own) const {
  std::vector<float> values(static_cast<std::size_t>(shares_.own().count));
  machine.download(std::as_writable_bytes(std::span(values)), own);
  return values;
}

/// As CpuParameters does: padding of a vocabulary is nobody's, what all tensor ranks have is the first one's.
void ParameterBlock::copy_values(ModelValues& model, std::span<const float> own, float factor) const {
  if (!shares_.speaks()) return;
  std::vector<float> values(own.begin(), own.end());
  for (float& value : values) value *= factor;
  for (const ParameterPiece& piece : pieces_in(places_, shares_.own())) {
    const PlacedParameter& parameter = places_.parameters[piece.parameter];
    if (options_.tensor.rank > 0 && parameter.tensor.split_dimension < 0) continue;
    std::vector<float>& whole =
        model[static_cast<std::size_t>(options_.first_layer) + parameter.layer][parameter.index];
    for (const ElementRun& run : runs_of(parameter)) {
      const std::int64_t first = std::max(run.local, piece.first_in_tensor);
      const std::int64_t end = std::min(run.local + run.count, piece.first_in_tensor + piece.count);
      if (run.is_replica || first >= end) continue;
      std::copy_n(values.begin() + piece.first_in_range + (first - piece.first_in_tensor), end - first,
                  whole.begin() + run.whole + (first - run.local));
    }
  }
}

void ParameterBlock::copy_weights(DeviceMachine& machine, ModelValues& model) const {
  copy_values(model, downloaded_master(machine), 1);
}

void ParameterBlock::copy_gradients(DeviceMachine& machine, ModelValues& model, int step, float factor) const {
  copy_values(model, downloaded(machine, captured_ + step * shares_.own().count), factor);
}

/// Into the block that may be in the host's memory: between replays nothing else touches it.
void ParameterBlock::write_state(DeviceMachine& machine, StatePlace at, std::span<const std::byte> bytes) {
  if (optimizer_places_.is_on_host())
    std::ranges::copy(bytes, state_ + at.first);
  else
    machine.upload(state_ + at.first, bytes);
}

std::vector<std::byte> ParameterBlock::read_state(DeviceMachine& machine) const {
  std::vector<std::byte> block(static_cast<std::size_t>(optimizer_places_.block_bytes()));
  if (optimizer_places_.is_on_host())
    std::copy_n(state_, block.size(), block.begin());
  else
    machine.download(block, state_);
  return block;
}

std::vector<float> ParameterBlock::downloaded_master(DeviceMachine& machine) const {
  if (own_master() != nullptr) return downloaded(machine, own_master());
  std::vector<float> values(static_cast<std::size_t>(shares_.own().count));
  std::memcpy(values.data(), state_ + optimizer_places_.master().first, values.size() * sizeof(float));
  return values;
}

void ParameterBlock::restore_state(DeviceMachine& machine) {
  if (options_.resume == nullptr) return;
  const bool by_element = is_elementwise(options_.optimizer.optimizer);
  std::vector<std::byte> block = read_state(machine);
  for_each_own_run([&](const OwnRun& run) {
    const SavedParameter& parameter = options_.resume->parameters[run.layer][run.index];
    const std::vector<StatePlace>& places = optimizer_places_.fields(run.piece);
    for (std::size_t field = 0; field < parameter.fields.size(); ++field) {
      const std::vector<std::byte>& saved = parameter.fields[field].bytes;
      std::byte* const to = block.data() + places[field].first;
      if (by_element)
        std::copy_n(saved.data() + kSingleBytes * run.whole, kSingleBytes * run.count,
                    to + kSingleBytes * run.first_in_piece);
      else
        std::ranges::copy(saved, to);
    }
  });
  write_state(machine, {0, optimizer_places_.block_bytes()}, block);
}

void ParameterBlock::save(DeviceMachine& machine, TrainingState& state) const {
  if (!shares_.speaks()) return;
  const bool by_element = is_elementwise(options_.optimizer.optimizer);
  const std::vector<std::byte> block = read_state(machine);
  const std::vector<float> weights = downloaded_master(machine);
  for_each_own_run([&](const OwnRun& run) {
    SavedParameter& parameter = state.parameters[run.layer][run.index];
    std::copy_n(weights.begin() + run.own, run.count, parameter.weights.begin() + run.whole);
    const std::vector<StatePlace>& places = optimizer_places_.fields(run.piece);
    for (std::size_t field = 0; field < parameter.fields.size(); ++field) {
      std::vector<std::byte>& whole = parameter.fields[field].bytes;
      const std::byte* const from = block.data() + places[field].first;
      if (by_element)
        std::copy_n(from + kSingleBytes * run.first_in_piece, kSingleBytes * run.count,
                    whole.data() + kSingleBytes * run.whole);
      else
        std::copy_n(from, whole.size(), whole.begin());
    }
  });
}

}}  // namespace plumb::executor

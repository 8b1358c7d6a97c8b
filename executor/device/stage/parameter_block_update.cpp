// A parameter block's update: part by part where its state is on the device, otherwise through the two halves of a
// window.

#include <vector>

#include "executor/cpu/parameters/optimizer_state.h"
#include "executor/device/stage/parameter_block.h"

namespace plumb { inline namespace executor {

void ParameterBlock::update(CallRecorder& recorder, int step, const StepNumbers* numbers, const float* constants,
                            std::byte* workspace) const {
  const ElementRange own = shares_.own();
  if (captured_ != nullptr) recorder.copy(captured_ + step * own.count, own_gradients(), own.count * kSingleBytes);
  if (optimizer_places_.is_on_host()) {
    update_from_host(recorder, numbers, constants, workspace);
  } else {
    for (const UpdatePart& part : optimizer_places_.parts()) {
      PartMemory memory = memory_of(part, numbers, constants, workspace);
      for (const StatePlace& field : part.fields) memory.fields.push_back(state_ + field.first);
      enqueue_update(recorder, options_.optimizer.optimizer, part, memory);
    }
  }
  if (shares_.zero() != 1) return;
  // What the reduction left of others' shares.
  if (own.first > 0) recorder.fill_zero(gradients_, own.first);
  const std::int64_t end = own.first + own.count;
  if (end < elements()) recorder.fill_zero(gradients_ + end, elements() - end);
}

/// Without the state's fields.
PartMemory ParameterBlock::memory_of(const UpdatePart& part, const StepNumbers* numbers, const float* constants,
                                     std::byte* workspace) const {
  const ElementRange own = shares_.own();
  std::byte* const stored = shares_.zero() < 3 ? stored_weights_ + own.first * element_bytes_ : stored_weights_;
  return {.weights = stored + part.first * element_bytes_,
          .master = own_master() == nullptr ? nullptr : own_master() + part.first,
          .gradients = own_gradients() + part.first,
          .fields = {},
          .squares = reinterpret_cast<simt::AdafactorSquares*>(workspace),
          .constants = constants,
          .numbers = numbers};
}

/// On the copy stream, beside a part's update, the state of the one before goes back from the other half of the window,
/// then that of the next one comes there. What follows stands behind the last that goes back: the window is others'.
void ParameterBlock::update_from_host(CallRecorder& recorder, const StepNumbers* numbers, const float* constants,
                                      std::byte* workspace) const {
  const std::vector<UpdatePart>& parts = optimizer_places_.parts();
  const auto fields_of = [&](std::size_t part) {
    std::vector<std::byte*> fields;
    for (const StatePlace& place : OptimizerPlaces::places_in_window(parts[part]))
      fields.push_back(workspace + optimizer_places_.window_offset(part) + place.first);
    return fields;
  };
  const auto move = [&](std::size_t part, bool comes) {
    const std::vector<std::byte*> here = fields_of(part);
    for (std::size_t field = 0; field < here.size(); ++field) {
      const StatePlace& place = parts[part].fields[field];
      std::byte* const there = state_ + place.first;
      recorder.copy(comes ? here[field] : there, comes ? there : here[field], place.count);
    }
  };
  if (parts.empty()) return;
  recorder.go_aside(DeviceStream::kCopy);
  move(0, true);
  std::int32_t coming = recorder.come_back();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const UpdatePart& part = parts[i];
    const std::int32_t here = coming;
    if (i > 0 || i + 1 < parts.size()) {
      recorder.go_aside(DeviceStream::kCopy);
      if (i > 0) move(i - 1, false);
      if (i + 1 < parts.size()) move(i + 1, true);
      coming = recorder.come_back();
    }
    recorder.await(here);
    PartMemory memory = memory_of(part, numbers, constants, workspace);
    memory.fields = fields_of(i);
    if (optimizer_places_.has_master_on_host()) memory.master = reinterpret_cast<float*>(memory.fields.back());
    enqueue_update(recorder, options_.optimizer.optimizer, part, memory);
    const bool has_vectors = optimizer_places_.has_master_on_host() && shares_.zero() == 0 && !part.decays;
    if (has_vectors)  // of shares, UNSHARD brings them
      recorder.copy(vector_block_ + vectors_.place_of(shares_.own().first + part.first), memory.master,
                    part.count * kSingleBytes);
  }
  recorder.go_aside(DeviceStream::kCopy);
  move(parts.size() - 1, false);
  recorder.await(recorder.come_back());
  recorder.open_piece();
}

}}  // namespace plumb::executor

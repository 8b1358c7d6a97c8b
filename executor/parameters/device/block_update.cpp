#include "executor/parameters/device/block_update.h"

#include <cstdint>
#include <vector>

#include "executor/parameters/device/device_update.h"
#include "executor/parameters/optimizer_state.h"

namespace plumb { inline namespace executor {
namespace {

class BlockUpdate {
 public:
  BlockUpdate(CallRecorder& recorder, const BlockLayout& layout, const BlockMemory& memory, const UpdateInputs& inputs)
      : recorder_(recorder),
        layout_(layout),
        memory_(memory),
        inputs_(inputs),
        places_(layout.optimizer()),
        parts_(places_.parts()) {}

  void on_device() {
    for (const UpdatePart& part : parts_) {
      PartMemory memory = memory_of(part);
      for (const StatePlace& field : part.fields) memory.fields.push_back(memory_.state + field.first);
      update(part, memory);
    }
  }

  /// Updates the parts one by one. On the copy stream, beside a part's update, the state of the one before goes back
  /// from the other half of the window, then that of the next one comes there. The calls that follow stand behind the
  /// last that goes back, as the window is theirs then.
  void from_host() {
    if (parts_.empty()) return;
    recorder_.go_aside(DeviceStream::kCopy);
    move(0, true);
    std::int32_t coming = recorder_.come_back();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::int32_t here = coming;
      if (i > 0 || i + 1 < parts_.size()) {
        recorder_.go_aside(DeviceStream::kCopy);
        if (i > 0) move(i - 1, false);
        if (i + 1 < parts_.size()) move(i + 1, true);
        coming = recorder_.come_back();
      }
      recorder_.await(here);
      update_in_window(i);
    }
    recorder_.go_aside(DeviceStream::kCopy);
    move(parts_.size() - 1, false);
    recorder_.await(recorder_.come_back());
    recorder_.open_piece();
  }

 private:
  /// Returns the addresses of a part without its state's fields.
  PartMemory memory_of(const UpdatePart& part) const {
    const std::int64_t element_bytes = layout_.element_bytes();
    std::byte* const stored = layout_.shares().zero() < 3 ? memory_.stored_weights + layout_.own().first * element_bytes
                                                          : memory_.stored_weights;
    float* const master = own_master(layout_, memory_);
    return {.weights = stored + part.first * element_bytes,
            .master = master == nullptr ? nullptr : master + part.first,
            .gradients = own_gradients(layout_, memory_) + part.first,
            .fields = {},
            .squares = reinterpret_cast<simt::AdafactorSquares*>(inputs_.workspace),
            .constants = inputs_.constants,
            .numbers = inputs_.numbers};
  }

  void update(const UpdatePart& part, const PartMemory& memory) {
    enqueue_update(recorder_, layout_.options().optimizer.optimizer, part, memory);
  }

  std::vector<std::byte*> fields_in_window(std::size_t part) const {
    std::vector<std::byte*> fields;
    for (const StatePlace& place : OptimizerPlaces::places_in_window(parts_[part]))
      fields.push_back(inputs_.workspace + places_.window_offset(part) + place.first);
    return fields;
  }

  void move(std::size_t part, bool comes) {
    const std::vector<std::byte*> here = fields_in_window(part);
    for (std::size_t field = 0; field < here.size(); ++field) {
      const StatePlace& place = parts_[part].fields[field];
      std::byte* const there = memory_.state + place.first;
      recorder_.copy(comes ? here[field] : there, comes ? there : here[field], place.count);
    }
  }

  void update_in_window(std::size_t number) {
    const UpdatePart& part = parts_[number];
    PartMemory memory = memory_of(part);
    memory.fields = fields_in_window(number);
    if (places_.has_master_on_host()) memory.master = reinterpret_cast<float*>(memory.fields.back());
    update(part, memory);
    // The biases of experts do not decay either, but are read as they are stored.
    const bool has_vectors = places_.has_master_on_host() && layout_.shares().zero() == 0 && !part.decays &&
                             layout_.vectors().elements() > 0;
    if (has_vectors)  // vectors of shares are brought by UNSHARD
      recorder_.copy(memory_.vector_block + layout_.vectors().place_of(layout_.own().first + part.first), memory.master,
                     part.count * kSingleBytes);
  }

  CallRecorder& recorder_;
  const BlockLayout& layout_;
  const BlockMemory& memory_;
  const UpdateInputs& inputs_;
  const OptimizerPlaces& places_;
  const std::vector<UpdatePart>& parts_;
};

}  // namespace

void enqueue_block_update(CallRecorder& recorder, const BlockLayout& layout, const BlockMemory& memory, int step,
                          const UpdateInputs& inputs) {
  const ElementRange own = layout.own();
  if (memory.captured != nullptr)
    recorder.copy(memory.captured + step * own.count, own_gradients(layout, memory), own.count * kSingleBytes);
  BlockUpdate update(recorder, layout, memory, inputs);
  if (layout.optimizer().is_on_host())
    update.from_host();
  else
    update.on_device();
  if (layout.shares().zero() != 1) return;
  // The reduction leaves undefined sums in the shares of others.
  if (own.first > 0) recorder.fill_zero(memory.gradients, own.first);
  const std::int64_t end = own.first + own.count;
  if (end < layout.elements()) recorder.fill_zero(memory.gradients + end, layout.elements() - end);
}

}}  // namespace plumb::executor

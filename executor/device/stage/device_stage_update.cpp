// A part of a stage's update: on the device where its state is there, otherwise through the window.

#include "executor/device/stage/device_stage.h"
#include "executor/device/stage/device_update.h"

namespace plumb {

void DeviceStage::update_part(DeviceKernels& kernels, const UpdatePart& part, const StepNumbers* numbers,
                              std::byte* workspace) const {
  const ElementRange own = shares_.own();
  std::byte* const stored = shares_.zero() < 3 ? stored_weights_ + own.first * element_bytes_ : stored_weights_;
  PartMemory memory{.weights = stored + part.first * element_bytes_,
                    .master = own_master() == nullptr ? nullptr : own_master() + part.first,
                    .gradients = own_gradients() + part.first,
                    .fields = {},
                    .squares = reinterpret_cast<simt::AdafactorSquares*>(workspace),
                    .constants = device_constants_ + update_constants_,
                    .numbers = numbers};
  if (!optimizer_places_.is_on_host()) {
    for (const StatePlace& field : part.fields) memory.fields.push_back(state_ + field.first);
    return enqueue_update(kernels, options_.optimizer, part, memory);
  }
  std::byte* const window = workspace + optimizer_places_.window_offset();
  const std::vector<StatePlace> here = OptimizerPlaces::places_in_window(part);
  for (std::size_t field = 0; field < here.size(); ++field) {
    memory.fields.push_back(window + here[field].first);
    kernels.copy(memory.fields.back(), state_ + part.fields[field].first, here[field].count);
  }
  if (optimizer_places_.has_master_on_host()) memory.master = reinterpret_cast<float*>(memory.fields.back());
  enqueue_update(kernels, options_.optimizer, part, memory);
  for (std::size_t field = 0; field < here.size(); ++field)
    kernels.copy(state_ + part.fields[field].first, memory.fields[field], here[field].count);
  const bool has_vectors = optimizer_places_.has_master_on_host() && shares_.zero() == 0 && !part.decays;
  if (has_vectors)  // of shares, UNSHARD brings them
    kernels.copy(vector_block_ + vectors_.place_of(own.first + part.first), memory.master,
                 part.count * std::int64_t{sizeof(float)});
}

}  // namespace plumb

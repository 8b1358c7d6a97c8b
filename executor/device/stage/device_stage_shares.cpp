// What a stage on a device does with its share of the parameters: where they are, and how copies of the stage sum
// gradients and make weights whole.

#include <algorithm>

#include "executor/cpu/initial_weights.h"
#include "executor/device/layers/device_parameters.h"
#include "executor/device/stage/device_stage.h"

namespace plumb {

std::int64_t DeviceStage::whole_gradient_bytes() const {
  return shares_.zero() < 2 || shares_.reduces_layers() ? 0 : elements() * std::int64_t{sizeof(float)};
}

void DeviceStage::open_gradients(DeviceKernels& kernels, const DevicePass& pass) const {
  kernels.fill_zero(pass.whole_gradients, elements());
}

/// Behind the layer's weight gradient.
void DeviceStage::complete_layer(CallRecorder* buckets, std::size_t layer) const {
  if (buckets == nullptr) return;
  const std::vector<std::size_t>& first_layers = shares_.first_layers();
  for (std::size_t bucket = 0; bucket < first_layers.size(); ++bucket)
    if (first_layers[bucket] == layer) buckets->complete_bucket(static_cast<int>(bucket));
}

void DeviceStage::reduce(CallRecorder& recorder, const DevicePass& pass, std::size_t bucket) const {
  if (shares_.reduces_layers()) return;  // passes have done so
  const bool is_share = shares_.zero() >= 2;
  const ElementRange own = shares_.own();
  float* gradients = is_share ? pass.whole_gradients : gradients_;
  for (const DeviceExchange& exchange : shares_.reduction(bucket, gradients)) recorder.exchange(exchange);
  if (!is_share) return;
  recorder.open_piece();
  if (own.count > 0) recorder.add_gradients(gradients_, gradients_, gradients + own.first, own.count);
}

void DeviceStage::gather(CallRecorder& recorder, std::byte* gathered) const {
  if (shares_.zero() == 0 || shares_.gathers_layers()) return;
  std::byte* weights = shares_.zero() == 3 ? gathered : stored_weights_;
  const ElementRange own = shares_.own();
  if (shares_.zero() == 3) recorder.open_piece();
  if (shares_.zero() == 3 && own.count > 0)
    recorder.copy(weights + own.first * element_bytes_, stored_weights_, own.count * element_bytes_);
  for (const DeviceExchange& exchange : shares_.gather(weights)) recorder.exchange(exchange);
  if (!options_.half) return;
  float* vectors =
      shares_.zero() == 3 ? reinterpret_cast<float*>(gathered + aligned_bytes(stored_bytes())) : vector_block_;
  vectors_.widen(recorder, vectors, weights, element_bytes_);
}

float* DeviceStage::own_master() const {
  if (optimizer_places_.has_master_on_host()) return nullptr;
  return options_.half || shares_.zero() == 3 ? master_ : master_ + shares_.own().first;
}

float* DeviceStage::own_gradients() const {
  return shares_.zero() < 2 ? gradients_ + shares_.own().first : gradients_;
}

std::vector<float> DeviceStage::initial_weights() const {
  std::vector<float> weights(static_cast<std::size_t>(elements()));
  for (std::size_t i = 0; i < options_.layers.size(); ++i) {
    const auto first = static_cast<std::size_t>(places_.first_element[i]);
    const auto count = static_cast<std::size_t>(places_.first_element[i + 1]) - first;
    const auto common = static_cast<std::size_t>(common_elements(options_.layers[i]));
    const std::span<float> own = std::span(weights).subspan(first, count);
    const int number = options_.first_layer + static_cast<int>(i);
    fill_initial_weights(own.first(common), model_layers_[i], number, options_.seed, options_.tensor);
    fill_initial_weights(own.subspan(common), model_layers_[i], number, options_.seed, options_.tensor,
                         ParameterPart::kExperts);
  }
  return weights;
}

/// Of own elements.
std::vector<float> DeviceStage::downloaded(DeviceMachine& machine, const float* own) const {
  std::vector<float> values(static_cast<std::size_t>(shares_.own().count));
  machine.download(std::as_writable_bytes(std::span(values)), own);
  return values;
}

/// As CpuParameters does: padding of a vocabulary is nobody's, what all tensor ranks have is the first one's.
void DeviceStage::copy_values(ModelValues& model, std::span<const float> own, float factor) const {
  if (!shares_.speaks()) return;
  std::vector<float> values(own.begin(), own.end());
  for (float& value : values) value *= factor;
  for (const ParameterPiece& piece : pieces_in(places_, shares_.own())) {
    const PlacedParameter& parameter = places_.parameters[piece.parameter];
    if (options_.tensor.rank > 0 && parameter.tensor.split_dimension < 0) continue;
    std::vector<float>& whole =
        model[static_cast<std::size_t>(options_.first_layer) + parameter.layer][parameter.index];
    for (const ElementRun& run : element_runs(model_layers_[parameter.layer], parameter.index, options_.tensor)) {
      const std::int64_t first = std::max(run.local, piece.first_in_tensor);
      const std::int64_t end = std::min(run.local + run.count, piece.first_in_tensor + piece.count);
      if (run.is_replica || first >= end) continue;
      std::copy_n(values.begin() + piece.first_in_range + (first - piece.first_in_tensor), end - first,
                  whole.begin() + run.whole + (first - run.local));
    }
  }
}

void DeviceStage::copy_weights(DeviceMachine& machine, ModelValues& model) const {
  copy_values(model, downloaded_master(machine), 1);
}

void DeviceStage::copy_gradients(DeviceMachine& machine, ModelValues& model, int step) const {
  copy_values(model, downloaded(machine, captured_ + step * shares_.own().count), last_numbers_.gradient_factor);
}

}  // namespace plumb

#include "executor/device/device_stage.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "executor/cpu/initial_weights.h"
#include "kernels/cpu/half.h"

namespace plumb {
namespace {

template <class T>
T* allocate_elements(DeviceMachine& machine, std::int64_t elements) {
  return reinterpret_cast<T*>(machine.allocate(elements * static_cast<std::int64_t>(sizeof(T))));
}

template <class T>
void upload_all(DeviceMachine& machine, T* to, std::span<const T> from) {
  machine.upload(to, std::as_bytes(from));
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kDeviceTensorAlignment - 1) / kDeviceTensorAlignment * kDeviceTensorAlignment;
}

DeviceStageOptions options_of_share(DeviceStageOptions options) {
  options.layers = divide_layers(options.layers, options.tensor.ranks);
  return options;
}

}  // namespace

DeviceStage::DeviceStage(const DeviceStageOptions& options)
    : options_(options_of_share(options)),
      model_layers_(options.layers),
      element_bytes_(options.half ? 2 : 4),
      tokens_(tokens_of(options.work)),
      places_(parameter_places(options_.layers)),
      shares_(places_, options.shares),
      vectors_(places_) {
  const ElementRange own = shares_.own();
  for (const PlacedParameter& parameter : places_.parameters) {
    const std::int64_t first = std::max(parameter.first, own.first);
    const std::int64_t end = std::min(parameter.first + parameter.count, own.first + own.count);
    if (first >= end) continue;
    const bool decays = parameter.tensor.shape.size() > 1;
    if (update_ranges_.empty() || update_ranges_.back().decays != decays)
      update_ranges_.push_back({.first = first, .decays = decays});
    update_ranges_.back().count = end - update_ranges_.back().first;
  }
  if (options_.is_tied) find_tied_table();
  for (const Layer& layer : options_.layers) {
    PlacedLayer placed{.layer = make_device_layer(layer, options_.work, element_bytes_),
                       .early = bytes_.early,
                       .late = bytes_.late,
                       .constants = static_cast<std::int64_t>(constants_.size())};
    const DeviceLayerBytes own = placed.layer->bytes();
    bytes_.early += own.early;
    bytes_.late += own.late;
    bytes_.forward_workspace = std::max(bytes_.forward_workspace, own.forward_workspace);
    bytes_.backward_workspace = std::max(bytes_.backward_workspace, own.backward_workspace);
    const std::vector<float> constants = placed.layer->constants();
    constants_.insert(constants_.end(), constants.begin(), constants.end());
    layers_.push_back(std::move(placed));
  }
}

void DeviceStage::find_tied_table() {
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&options_.layers.front())) {
    tied_embedding_ = parameter_offset(*embedding, "tokens.weight");
    tied_elements_ = embedding->vocab * embedding->hidden;
  }
  if (const auto* head = std::get_if<HeadLayer>(&options_.layers.back())) {
    tied_head_ = places_.first_element[options_.layers.size() - 1] + parameter_offset(*head, "projection.weight");
    tied_elements_ = head->vocab * head->hidden;
  }
}

/// Of the stage's input, where F keeps nothing else.
std::int64_t DeviceStage::kept_bytes() const {
  return reads_tokens() ? 0 : input_bytes();
}

/// Of all weights as they are stored, in whole words.
std::int64_t DeviceStage::stored_bytes() const {
  return (elements() * element_bytes_ + 3) / 4 * 4;
}

StageMemory DeviceStage::memory() const {
  const std::int64_t own = shares_.own().count, single = sizeof(float);
  StageMemory memory{.parameter_bytes = (shares_.zero() < 3 ? elements() : own) * element_bytes_,
                     .gradient_bytes = (shares_.zero() < 2 ? elements() : own) * single,
                     .optimizer_bytes = (options_.half ? 3 : 2) * own * single,
                     .forward_bytes = bytes_.early + bytes_.late,
                     .released_at_input_grad_bytes = bytes_.early,
                     .forward_workspace_bytes = bytes_.forward_workspace,
                     .backward_workspace_bytes = bytes_.backward_workspace};
  if (shares_.zero() == 3) memory.unsharded_bytes = version_bytes();
  if (options_.recomputes) {
    const std::int64_t again = bytes_.forward_workspace + aligned(output_bytes());
    memory.forward_bytes = kept_bytes();
    memory.recompute_bytes = bytes_.early + bytes_.late;
    memory.forward_workspace_bytes = again + bytes_.early + bytes_.late;
    memory.backward_workspace_bytes = std::max(again, bytes_.backward_workspace);
  }
  return memory;
}

std::int64_t DeviceStage::whole_gradient_bytes() const {
  return shares_.zero() < 2 ? 0 : elements() * std::int64_t{sizeof(float)};
}

std::int64_t DeviceStage::version_bytes() const {
  const std::int64_t stored = stored_bytes();
  return options_.half ? aligned(stored) + vectors_.elements() * std::int64_t{sizeof(float)} : stored;
}

std::int64_t DeviceStage::input_bytes() const {
  return input_elements(options_.layers.front(), options_.work) * element_bytes_;
}

std::int64_t DeviceStage::output_bytes() const {
  return output_elements(options_.layers.back(), options_.work) * element_bytes_;
}

std::int64_t DeviceStage::held_bytes() const {
  const StageMemory held = memory();
  const int streams = static_cast<int>(reads_tokens()) + 2 * static_cast<int>(reads_targets());
  return held.parameter_bytes + held.gradient_bytes + held.optimizer_bytes +
         static_cast<std::int64_t>(constants_.size() * sizeof(float)) +
         options_.steps * static_cast<std::int64_t>(sizeof(StepNumbers)) +
         (options_.half && shares_.zero() > 0 ? vectors_.elements() * std::int64_t{sizeof(float)} : 0) +
         kGradientPieces * std::int64_t{sizeof(float)} +
         streams * options_.microbatches * tokens_ * std::int64_t{sizeof(float)};
}

bool DeviceStage::reads_tokens() const {
  return std::holds_alternative<EmbeddingLayer>(options_.layers.front());
}

bool DeviceStage::reads_targets() const {
  return std::holds_alternative<HeadLayer>(options_.layers.back());
}

std::vector<float> DeviceStage::initial_weights() const {
  std::vector<float> weights(static_cast<std::size_t>(elements()));
  for (std::size_t i = 0; i < options_.layers.size(); ++i) {
    const std::int64_t first = places_.first_element[i];
    fill_initial_weights(std::span(weights).subspan(static_cast<std::size_t>(first),
                                                    static_cast<std::size_t>(places_.first_element[i + 1] - first)),
                         model_layers_[i], options_.first_layer + static_cast<int>(i), options_.seed, options_.tensor);
  }
  return weights;
}

void DeviceStage::settle(DeviceMachine& machine, bool capture_gradients) {
  const std::vector<float> weights = initial_weights();
  const ElementRange own = shares_.own();
  const auto own_weights =
      std::span(weights).subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count));
  const bool is_whole = shares_.zero() < 3;
  const std::span<const float> held = is_whole ? std::span(weights) : own_weights;
  if (options_.half) {
    std::vector<std::uint16_t> narrow_weights(held.size());
    narrow(narrow_weights.data(), held.data(), std::ssize(held), *options_.half);
    stored_weights_ = machine.allocate(is_whole ? stored_bytes() : std::ssize(held) * element_bytes_ + 2);
    machine.upload(stored_weights_, std::as_bytes(std::span(narrow_weights)));
    master_ = allocate_elements<float>(machine, own.count);
    upload_all<float>(machine, master_, own_weights);
  } else {
    master_ = allocate_elements<float>(machine, std::ssize(held));
    upload_all<float>(machine, master_, held);
    stored_weights_ = reinterpret_cast<std::byte*>(master_);
  }
  if (options_.half && shares_.zero() > 0) {
    const std::vector<float> vectors = vectors_.packed(weights);
    vector_block_ = allocate_elements<float>(machine, vectors_.elements());
    upload_all<float>(machine, vector_block_, vectors);
  }
  gradients_ = allocate_elements<float>(machine, shares_.zero() < 2 ? elements() : own.count);
  first_moment_ = allocate_elements<float>(machine, own.count);
  second_moment_ = allocate_elements<float>(machine, own.count);
  if (!constants_.empty()) {
    device_constants_ = allocate_elements<float>(machine, static_cast<std::int64_t>(constants_.size()));
    upload_all<float>(machine, device_constants_, constants_);
  }
  const std::int64_t all_tokens = options_.microbatches * tokens_;
  if (reads_tokens()) token_numbers_ = allocate_elements<std::int32_t>(machine, all_tokens);
  if (reads_targets()) {
    target_numbers_ = allocate_elements<std::int32_t>(machine, all_tokens);
    losses_ = allocate_elements<float>(machine, all_tokens);
  }
  numbers_ = allocate_elements<StepNumbers>(machine, options_.steps);
  tied_partials_ = allocate_elements<float>(machine, kGradientPieces);
  if (capture_gradients) captured_ = allocate_elements<float>(machine, options_.steps * shares_.own().count);
}

void DeviceStage::upload_tokens(DeviceMachine& machine, std::span<const std::int32_t> tokens) const {
  upload_all(machine, token_numbers_, tokens);
}

void DeviceStage::upload_targets(DeviceMachine& machine, std::span<const std::int32_t> targets) const {
  upload_all(machine, target_numbers_, targets);
}

DeviceLayerCall DeviceStage::call_of(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const {
  const PlacedLayer& placed = layers_[layer];
  const std::int64_t first = places_.first_element[layer];
  const std::int64_t token = pass.microbatch * tokens_;
  const std::byte* weights = pass.weights != nullptr ? pass.weights : stored_weights_;
  const float* vectors = reinterpret_cast<const float*>(weights);
  bool is_packed = false;
  if (options_.half) {
    is_packed = pass.weights != nullptr || shares_.zero() > 0;
    vectors = pass.weights != nullptr ? reinterpret_cast<const float*>(pass.weights + aligned(stored_bytes()))
                                      : (is_packed ? vector_block_ : master_);
  }
  return {.kernels = kernels,
          .early = pass.early + placed.early,
          .late = pass.late + placed.late,
          .workspace = pass.workspace,
          .weights = weights + first * element_bytes_,
          .vectors = is_packed ? vectors : vectors + first,
          .packed = is_packed ? &vectors_ : nullptr,
          .first_element = first,
          .gradients = (shares_.zero() < 2 ? gradients_ : pass.whole_gradients) + first,
          .constants = device_constants_ == nullptr ? nullptr : device_constants_ + placed.constants,
          .tokens = token_numbers_ == nullptr ? nullptr : token_numbers_ + token,
          .targets = target_numbers_ == nullptr ? nullptr : target_numbers_ + token,
          .losses = losses_ == nullptr ? nullptr : losses_ + token,
          .gradient_scale = options_.gradient_scales[static_cast<std::size_t>(pass.microbatch)],
          .loss_scale = options_.agrees ? &numbers_->loss_scale : nullptr};
}

void DeviceStage::forward(DeviceKernels& kernels, const DevicePass& pass) const {
  if (!options_.recomputes) return run_forward(kernels, pass);
  if (pass.incoming != nullptr) kernels.copy(pass.kept, pass.incoming, input_bytes());
  DevicePass forgotten = pass;
  forgotten.early = pass.workspace + bytes_.forward_workspace + aligned(output_bytes());
  forgotten.late = forgotten.early + bytes_.early;
  run_forward(kernels, forgotten);
}

void DeviceStage::recompute(DeviceKernels& kernels, const DevicePass& pass) const {
  DevicePass again = pass;
  again.incoming = pass.kept;
  again.outgoing = reads_targets() ? nullptr : pass.workspace + bytes_.forward_workspace;
  run_forward(kernels, again);
}

void DeviceStage::run_forward(DeviceKernels& kernels, const DevicePass& pass) const {
  if (pass.incoming != nullptr) {
    const DeviceLayerCall first = call_of(kernels, pass, 0);
    kernels.copy(address_of(first, layers_.front().layer->input()), pass.incoming, input_bytes());
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    std::byte* output = pass.outgoing;
    if (i + 1 < layers_.size()) output = address_of(call_of(kernels, pass, i + 1), layers_[i + 1].layer->input());
    layers_[i].layer->forward(call_of(kernels, pass, i), output);
  }
}

void DeviceStage::open_gradients(DeviceKernels& kernels, const DevicePass& pass) const {
  kernels.fill_zero(pass.whole_gradients, elements());
}

void DeviceStage::input_grad(DeviceKernels& kernels, const DevicePass& pass) const {
  if (pass.incoming != nullptr) {
    const DeviceLayerCall last = call_of(kernels, pass, layers_.size() - 1);
    kernels.copy(address_of(last, layers_.back().layer->output_gradient()), pass.incoming, output_bytes());
  }
  for (std::size_t i = layers_.size(); i-- > 0;) {
    std::byte* gradient = pass.outgoing;
    if (i > 0) gradient = address_of(call_of(kernels, pass, i - 1), layers_[i - 1].layer->output_gradient());
    layers_[i].layer->input_grad(call_of(kernels, pass, i), gradient);
  }
}

void DeviceStage::weight_grad(DeviceKernels& kernels, const DevicePass& pass, CallRecorder* buckets) const {
  const std::vector<std::size_t>& first_layers = shares_.first_layers();
  std::size_t bucket = 0;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    layers_[i].layer->weight_grad(call_of(kernels, pass, i));
    for (; buckets != nullptr && bucket < first_layers.size() && first_layers[bucket] == i; ++bucket)
      buckets->complete_bucket(static_cast<int>(bucket));
  }
}

void DeviceStage::reduce(CallRecorder& recorder, const DevicePass& pass, std::size_t bucket) const {
  const bool is_share = shares_.zero() >= 2;
  const ElementRange own = shares_.own();
  float* gradients = is_share ? pass.whole_gradients : gradients_;
  for (const DeviceExchange& exchange : shares_.reduction(bucket, gradients)) recorder.exchange(exchange);
  if (!is_share) return;
  recorder.open_piece();
  if (own.count > 0) recorder.add_gradients(gradients_, gradients_, gradients + own.first, own.count);
}

void DeviceStage::gather(CallRecorder& recorder, std::byte* gathered) const {
  if (shares_.zero() == 0) return;
  std::byte* weights = shares_.zero() == 3 ? gathered : stored_weights_;
  const ElementRange own = shares_.own();
  if (shares_.zero() == 3) recorder.open_piece();
  if (shares_.zero() == 3 && own.count > 0)
    recorder.copy(weights + own.first * element_bytes_, stored_weights_, own.count * element_bytes_);
  for (const DeviceExchange& exchange : shares_.gather(weights)) recorder.exchange(exchange);
  if (!options_.half) return;
  float* vectors =
      shares_.zero() == 3 ? reinterpret_cast<float*>(gathered + aligned(stored_bytes())) : vector_block_;
  vectors_.widen(recorder, vectors, weights, element_bytes_);
}

float* DeviceStage::own_master() const {
  return options_.half || shares_.zero() == 3 ? master_ : master_ + shares_.own().first;
}

float* DeviceStage::own_gradients() const {
  return shares_.zero() < 2 ? gradients_ + shares_.own().first : gradients_;
}

std::int64_t DeviceStage::tied_elements() const {
  return tied_head_ < 0 ? 0 : tied_elements_;
}

void DeviceStage::hand_out_tied(DeviceKernels& kernels, const DeviceTiedTable& tied) const {
  const std::int64_t bytes = tied.elements * std::int64_t{sizeof(float)};
  if (tied_embedding_ >= 0) kernels.copy(tied.embedding, gradients_ + tied_embedding_, bytes);
  if (tied_head_ >= 0) kernels.copy(tied.head, gradients_ + tied_head_, bytes);
}

void DeviceStage::measure_gradients(DeviceKernels& kernels, float* partials) const {
  std::int64_t begin = 0;
  const auto measure_up_to = [&](std::int64_t end) {
    if (end > begin) kernels.sum_of_squares(partials, gradients_ + begin, nullptr, end - begin, gradient_limit());
    partials += kGradientPieces;
  };
  for (const std::int64_t table : {tied_embedding_, tied_head_}) {
    if (table < 0) continue;
    measure_up_to(table);
    begin = table + tied_elements_;
  }
  measure_up_to(elements());
}

/// Beyond it a gradient counts as overflown.
float DeviceStage::gradient_limit() const {
  return options_.half == HalfFormat::kFp16 ? kLargestFp16 : INFINITY;
}

void DeviceStage::optimizer_step(DeviceKernels& kernels, int step, std::byte* replaced, const float* partials,
                                 std::int64_t count, const DeviceTiedTable& tied) const {
  StepNumbers* numbers = numbers_ + step;
  if (replaced != nullptr) {
    const std::int64_t stored = stored_bytes();
    kernels.copy(replaced, stored_weights_, elements() * element_bytes_);
    if (options_.half) vectors_.pack(kernels, reinterpret_cast<float*>(replaced + aligned(stored)), master_);
  }
  if (options_.agrees) {
    if (tied.elements > 0)
      kernels.sum_of_squares(tied_partials_, tied.embedding, tied.head, tied.elements, gradient_limit());
    kernels.decide_step(numbers, partials, count, tied_partials_, tied.elements > 0 ? kGradientPieces : 0,
                        options_.clip_norm);
  }
  for (const std::int64_t table : {tied_embedding_, tied_head_})
    if (table >= 0) kernels.add_gradients(gradients_ + table, tied.embedding, tied.head, tied.elements);
  const ElementRange own = shares_.own();
  if (captured_ != nullptr)
    kernels.copy(captured_ + step * own.count, own_gradients(), own.count * std::int64_t{sizeof(float)});
  std::byte* stored = shares_.zero() < 3 ? stored_weights_ + own.first * element_bytes_ : stored_weights_;
  for (const UpdateRange& range : update_ranges_) {
    AdamW optimizer = options_.optimizer;
    if (!range.decays) optimizer.weight_decay = 0;
    const std::int64_t at = range.first - own.first;
    kernels.adamw_update({.weights = stored + at * element_bytes_,
                          .master = own_master() + at,
                          .gradients = own_gradients() + at,
                          .first_moment = first_moment_ + at,
                          .second_moment = second_moment_ + at,
                          .elements = range.count,
                          .numbers = numbers},
                         optimizer);
  }
  if (shares_.zero() != 1) return;
  // What the reduction left of others' shares.
  if (own.first > 0) kernels.fill_zero(gradients_, own.first);
  const std::int64_t end = own.first + own.count;
  if (end < elements()) kernels.fill_zero(gradients_ + end, elements() - end);
}

void DeviceStage::begin_step(DeviceMachine& machine, float loss_scale) {
  std::vector<StepNumbers> numbers;
  for (int step = 1; step <= options_.steps; ++step) {
    const auto correction = [&](float beta) {
      return static_cast<float>(1 - std::pow(double{beta}, static_cast<double>(updates_ + step)));
    };
    numbers.push_back({.first_correction = correction(options_.optimizer.beta1),
                       .second_correction = correction(options_.optimizer.beta2),
                       .loss_scale = loss_scale});
  }
  last_numbers_ = numbers.back();
  upload_all<StepNumbers>(machine, numbers_, numbers);
}

StepNumbers DeviceStage::end_step(DeviceMachine& machine) {
  if (options_.agrees) machine.download(std::as_writable_bytes(std::span(&last_numbers_, 1)), numbers_);
  if (last_numbers_.skips == 0) updates_ += options_.steps;
  return last_numbers_;
}

std::vector<double> DeviceStage::losses(DeviceMachine& machine) const {
  std::vector<double> sums(static_cast<std::size_t>(options_.microbatches), 0);
  if (losses_ == nullptr) return sums;
  std::vector<float> of_tokens(static_cast<std::size_t>(options_.microbatches * tokens_));
  machine.download(std::as_writable_bytes(std::span(of_tokens)), losses_);
  for (std::size_t i = 0; i < of_tokens.size(); ++i) sums[i / static_cast<std::size_t>(tokens_)] += of_tokens[i];
  return sums;
}

/// As CpuParameters does: padding of a vocabulary is nobody's, what all tensor ranks have is the first one's.
void DeviceStage::copy_values(DeviceMachine& machine, ModelValues& model, const float* own, float factor) const {
  if (!shares_.speaks()) return;
  std::vector<float> values(static_cast<std::size_t>(shares_.own().count));
  machine.download(std::as_writable_bytes(std::span(values)), own);
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
  copy_values(machine, model, own_master(), 1);
}

void DeviceStage::copy_gradients(DeviceMachine& machine, ModelValues& model, int step) const {
  copy_values(machine, model, captured_ + step * shares_.own().count, last_numbers_.gradient_factor);
}

}  // namespace plumb

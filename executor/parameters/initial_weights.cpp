#include "executor/parameters/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <thread>
#include <vector>

#include "kernels/counter_random.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::uint64_t kWeightStream = 1;  // random stream of the weights; the data draw from stream 2
constexpr float kTableDeviation = 0.02F;

/// Returns true if a ReLU follows. It halves the second moment, so the layer before it has twice the variance (He et
/// al. 2015).
bool has_relu(const Layer& layer) {
  if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) return convolution->relu;
  const auto* linear = std::get_if<LinearLayer>(&layer);
  return linear != nullptr && linear->activation == Activation::kRelu;
}

float deviation_of(const Layer& layer, const ParameterTensor& matrix) {
  if (std::holds_alternative<EmbeddingLayer>(layer) || std::holds_alternative<HeadLayer>(layer)) return kTableDeviation;
  return std::sqrt((has_relu(layer) ? 2.0F : 1.0F) / static_cast<float>(matrix.shape.back()));
}

/// Calls work(first, end) for stretches of [0, count), on all cores where there are enough elements. A model of a billion
/// parameters takes a core most of a minute.
template <class Work>
void for_each_stretch(std::int64_t count, const Work& work) {
  constexpr std::int64_t kFewest = std::int64_t{1} << 20;
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t stretches = std::clamp<std::int64_t>(count / kFewest, 1, cores);
  const auto begin_of = [&](std::int64_t i) { return count / stretches * i + std::min(i, count % stretches); };
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < stretches; ++i)
    others.emplace_back([&work, first = begin_of(i), end = begin_of(i + 1)] { work(first, end); });
  work(0, begin_of(1));
}

/// Returns a random initial value, by the bits of its key.
float drawn_value(InitialValues values, float deviation, std::initializer_list<std::uint64_t> key) {
  if (values == InitialValues::kNormal) return deviation * standard_normal(key);
  const double share = uniform_share(key);
  if (values == InitialValues::kDecayLog) {
    constexpr double kLargestDecay = 16;
    return static_cast<float>(std::log(1 + (kLargestDecay - 1) * share));
  }
  constexpr double kSmallestStep = 1e-3, kLargestStep = 1e-1;
  const double step = kSmallestStep * std::pow(kLargestStep / kSmallestStep, share);
  return static_cast<float>(std::log(std::expm1(step)));
}

}  // namespace

void fill_initial_weights(std::span<float> weights, const Layer& layer, int layer_number, std::uint64_t seed,
                          const TensorSeat& seat, ParameterPart part, const ExpertSeat& experts) {
  const auto* head = std::get_if<HeadLayer>(&layer);
  std::size_t offset = 0;
  std::uint64_t number = 0;
  const std::vector<ParameterTensor> shares =
      layer_parameters(divide_layer(layer, seat.ranks, experts.tensor.ranks), 1, {.parallel = experts.ranks});
  for (const ParameterTensor& tensor : layer_parameters(layer)) {
    const auto parameter = static_cast<std::size_t>(number);
    if (!is_in(tensor, part)) {
      ++number;
      continue;
    }
    const std::span<float> values = weights.subspan(offset, static_cast<std::size_t>(element_count(shares[parameter])));
    offset += values.size();
    const bool is_tied_table = head != nullptr && head->tied && tensor.name == "projection.weight";
    const std::uint64_t key_layer = is_tied_table ? 0 : static_cast<std::uint64_t>(layer_number);
    const std::uint64_t key_number = is_tied_table ? 0 : number;
    ++number;
    std::ranges::fill(values, tensor.initial == InitialValues::kOnes ? 1.0F : 0.0F);
    if (tensor.initial == InitialValues::kZeros || tensor.initial == InitialValues::kOnes) continue;
    const float deviation = deviation_of(layer, tensor);
    for (const ElementRun& run : element_runs(layer, parameter, seat, experts))
      for_each_stretch(run.count, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i)
          values[static_cast<std::size_t>(run.local + i)] =
              drawn_value(tensor.initial, deviation,
                          {kWeightStream, seed, key_layer, key_number, static_cast<std::uint64_t>(run.whole + i)});
      });
  }
}

}}  // namespace plumb::executor

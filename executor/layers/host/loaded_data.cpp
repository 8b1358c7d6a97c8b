#include "executor/layers/host/loaded_data.h"

#include <variant>

namespace plumb { inline namespace executor {
namespace {

std::span<std::int32_t> integers(Tensor& tensor) {
  return {tensor.tokens(), static_cast<std::size_t>(tensor.elements())};
}

struct Loader {
  Tensor& tensor;
  const LayerCall& call;

  /// A tensor rank looks up the tokens in its own rows of the table; the others become negative.
  void operator()(const EmbeddingLayer& layer) const {
    fill_inputs(integers(tensor), call.context.text, call.place);
    const TensorSeat& seat = call.context.seat.tensor;
    if (seat.ranks == 1) return;
    const std::int64_t own = rank_share(layer, seat.ranks).vocab;
    for (std::int32_t& token : integers(tensor)) {
      const std::int64_t row = token - seat.rank * own;
      token = row >= 0 && row < own ? static_cast<std::int32_t>(row) : -1;
    }
  }
  void operator()(const HeadLayer&) const { fill_targets(integers(tensor), call.context.text, call.place); }
  void operator()(const InputLayer&) const { fill_samples(tensor.values(), *call.context.samples, call.place); }
  void operator()(const LossLayer& layer) const {
    if (layer.loss == LossKind::kCrossEntropy)
      fill_labels(integers(tensor), *call.context.samples, call.place);
    else
      fill_sample_targets(tensor.values(), *call.context.samples, call.place);
  }
  template <class Other>
  void operator()(const Other&) const {
    assert(!"the layer loads nothing");
  }
};

}  // namespace

void load_data(Tensor& tensor, const Layer& layer, const LayerCall& call) {
  std::visit(Loader{tensor, call}, layer);
}

}}  // namespace plumb::executor

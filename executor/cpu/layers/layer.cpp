#include "executor/cpu/layers/layer.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "executor/cpu/layers/layer_kinds.h"

namespace plumb { inline namespace executor {
namespace {

struct CpuLayerMaker {
  std::int64_t sequence;
  LayerSeat seat;

  std::unique_ptr<CpuLayer> operator()(const EmbeddingLayer& layer) const { return make_cpu_embedding(layer, seat); }
  std::unique_ptr<CpuLayer> operator()(const TransformerLayer& layer) const {
    return make_cpu_transformer(std::get<TransformerLayer>(divide_layer(layer, seat.tensor.ranks)), sequence, seat);
  }
  std::unique_ptr<CpuLayer> operator()(const HeadLayer& layer) const { return make_cpu_head(layer, seat.tensor); }
  std::unique_ptr<CpuLayer> operator()(const InputLayer& layer) const { return make_cpu_input(layer); }
  std::unique_ptr<CpuLayer> operator()(const ConvolutionLayer& layer) const { return make_cpu_convolution(layer); }
  std::unique_ptr<CpuLayer> operator()(const PoolingLayer& layer) const { return make_cpu_pooling(layer); }
  std::unique_ptr<CpuLayer> operator()(const LinearLayer& layer) const { return make_cpu_linear(layer); }
  std::unique_ptr<CpuLayer> operator()(const MlpLayer& layer) const { return make_cpu_mlp(layer); }
  std::unique_ptr<CpuLayer> operator()(const LossLayer& layer) const { return make_cpu_loss(layer); }
};

}  // namespace

void drop_tensors(LayerSaved& saved) {
  for (Tensor* tensor : saved.tensors()) *tensor = {};
  saved.is_narrow = false;
}

void CpuLayer::rebuild_cheap(const LayerCall&, LayerSaved&) const {}

std::int64_t CpuLayer::scratch_elements(const LayerWork&) const {
  return 0;
}

ElementRange CpuLayer::tied_table(ModelEnd) const {
  return {};
}

DropoutSite dropout_site(const LayerCall& call, std::uint64_t number, std::int64_t columns) {
  const LayerWork& work = call.context.work;
  return {.key = {.seed = call.place.seed,
                  .step = static_cast<std::uint64_t>(call.place.step),
                  .layer = static_cast<std::uint64_t>(call.layer_number),
                  .place = number},
          .rows = {.first_sample = call.place.first_sample,
                   .count = work.microbatch,
                   .first_token = call.context.first_token,
                   .tokens = work.sequence,
                   .columns = columns}};
}

std::unique_ptr<CpuLayer> make_cpu_layer(const Layer& layer, std::int64_t sequence, const LayerSeat& seat) {
  assert(has_kernels(layer));
  return std::visit(CpuLayerMaker{sequence, seat}, layer);
}

std::int64_t parameter_offset(const Layer& layer, const std::string& name, int expert_ranks) {
  const std::vector<ParameterTensor> tensors = layer_parameters(layer, 1, {.parallel = expert_ranks});
  const auto named = std::ranges::find(tensors, name, &ParameterTensor::name);
  if (named == tensors.end()) return -1;
  std::int64_t offset = 0;
  for (auto tensor = tensors.begin(); tensor != named; ++tensor)
    if (tensor->expert == named->expert) offset += element_count(*tensor);
  return offset;
}

}}  // namespace plumb::executor

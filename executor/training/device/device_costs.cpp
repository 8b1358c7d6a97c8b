#include "executor/training/device/device_costs.h"

#include <algorithm>

namespace plumb { inline namespace executor {
namespace {

Seconds flops_of(const std::vector<Layer>& layers, const LayerWork& work, Pass pass) {
  double flops = 0;
  for (const Layer& layer : layers)
    for (const KernelCall& kernel : layer_kernels(layer, work, pass)) flops += kernel.flops;
  return Seconds{1e-12 * flops};
}

/// A GPU does so many FLOPs while a byte goes to the host (400 TFLOP/s, 50 GB/s), or to another place in its memory.
constexpr double kFlopsOfHostByte = 8000, kFlopsOfDeviceByte = 300;

/// A move is taken to be hidden by the forward beside it: a longer one holds up the calls that wait for its place,
/// rather than asking for more places.
void guess_moves(StageCosts& costs, Seconds forward) {
  const auto guess = [&](Op op, double flops_of_byte) {
    const Seconds copy{1e-12 * flops_of_byte * static_cast<double>(costs.memory.forward_bytes)};
    costs.segments[static_cast<std::size_t>(op)] = {{{.seconds = std::min(copy, forward)}}};
  };
  for (const Op op : {Op::kOffload, Op::kReload}) guess(op, kFlopsOfHostByte);
  for (const Op op : {Op::kEvict, Op::kLoad}) guess(op, kFlopsOfDeviceByte);
}

}  // namespace

CostTable device_costs(const RunSpec& spec, const DeviceStages& stages) {
  const LayerWork work{.microbatch = spec.microbatch, .sequence = spec.sequence / std::max(1, spec.grid.context)};
  ChunkCosts chunk{.forward = {}, .input_grad = {}, .weight_grad = {}};
  for (const std::vector<Layer>& layers : spec.stage_layers) {
    chunk.forward.push_back(flops_of(layers, work, Pass::kForward));
    chunk.input_grad.push_back(flops_of(layers, work, Pass::kInputGrad));
    chunk.weight_grad.push_back(flops_of(layers, work, Pass::kWeightGrad));
  }
  CostTable costs = chunk_cost_table(static_cast<int>(spec.stage_layers.size()), chunk);
  for (std::size_t stage = 0; stage < spec.stage_layers.size(); ++stage) {
    const DeviceStage& first = stages.at(0, stage);
    costs.stages[stage].memory = first.memory();
    costs.stages[stage].memory.parameter_bytes = first.parameters().version_bytes();
    costs.stages[stage].activation_message_bytes = first.slices().output_bytes();
    costs.stages[stage].gradient_message_bytes = first.slices().input_bytes();
    guess_moves(costs.stages[stage], chunk.forward[stage]);
  }
  return costs;
}

}}  // namespace plumb::executor

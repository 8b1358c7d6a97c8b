#include <algorithm>

#include <fmt/format.h>

#include "executor/device/layers/device_layer.h"
#include "executor/device/run_device.h"
#include "executor/division/tensor_division.h"
#include "schedules/error.h"

namespace plumb {
namespace {

void refuse(bool wrong, const char* what, const char* remedy) {
  if (wrong) throw SpecError(fmt::format("a device does not run {} yet: {}", what, remedy));
}

bool is_dense(const Layer& layer) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block == nullptr || block->experts == 0;
}

/// Their counts go through fp32.
bool has_too_many_picks(const Layer& layer, std::int64_t tokens) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block != nullptr && block->experts > 0 && tokens * block->experts_per_token >= std::int64_t{1} << 24;
}

}  // namespace

void require_device_runnable(const RunSpec& spec) {
  constexpr const char* kCpu = "use --backend cpu";
  const ProcessGrid& grid = spec.grid;
  refuse(grid.expert != 1, "expert groups", "set ep to 1, or use --backend cpu");
  refuse(spec.zero >= 2 && spec.layerwise && std::ranges::count(stages_with_copies(spec.schedule), true) > 0,
         "ZeRO layer by layer over copies of a stage in one schedule", "gather whole stages, or use --backend cpu");
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    for (const Action& action : actions)
      refuse(action.part != 0 && action.op != Op::kReduceGrad, "slices of sequences", kCpu);  // of these it is a bucket
  for (const std::vector<Layer>& layers : spec.stage_layers)
    for (const Layer& layer : layers) {
      refuse(!has_device_kernels(layer),
             "latent attention, heads of more than 256 channels and more than 32 experts a token", kCpu);
      refuse(grid.tensor > 1 && spec.sequence_parallel && !is_dense(layer), "experts with sequence parallelism",
             "leave it out, or use --backend cpu");
      refuse(grid.context > 1 && !is_dense(layer), "experts in context groups", "set cp to 1, or use --backend cpu");
      refuse(has_too_many_picks(layer, spec.microbatch * spec.sequence), "2^24 picks of a router in one micro-batch",
             "take a smaller micro-batch");
    }
}

}  // namespace plumb

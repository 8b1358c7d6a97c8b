#include <algorithm>

#include <fmt/format.h>

#include "executor/layers/device/device_layer.h"
#include "executor/spec/division/tensor_division.h"
#include "executor/training/device/run_device.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

void refuse(bool wrong, const char* what, const char* remedy) {
  if (wrong) throw SpecError(fmt::format("a device does not run {} yet: {}", what, remedy));
}

bool is_mixture(const Layer& layer) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block != nullptr && block->experts > 0;
}

/// Counts of picks go through fp32.
bool has_too_many_picks(const Layer& layer, std::int64_t tokens) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return is_mixture(layer) && tokens * block->experts_per_token >= std::int64_t{1} << 24;
}

}  // namespace

void require_device_runnable(const RunSpec& spec) {
  constexpr const char* kCpu = "use --backend cpu";
  const int slices = ActionTable(spec.schedule).parts();
  const bool shares_experts = expert_tensor_ranks(spec.grid) == spec.grid.tensor;
  refuse(spec.shard > 0, "state that some of the replicas share", "leave shard out, or use --backend cpu");
  for (const std::vector<Layer>& layers : spec.stage_layers)
    for (const Layer& layer : layers) {
      refuse(!has_device_kernels(layer),
             "heads of more than 256 channels, more than 32 experts a token and convolutions over more than 8 tokens",
             kCpu);
      refuse(mixer_of<Mamba2Mixer>(layer) != nullptr && slices > 1, "Mamba-2's blocks in slices of sequences",
             "choose a schedule without slices, or use --backend cpu");
      refuse(is_mixture(layer) && !shares_experts, "experts that fewer ranks share than the tensor group has",
             "give etp the degree of tp, or use --backend cpu");
      refuse(has_too_many_picks(layer, spec.microbatch * spec.sequence), "2^24 picks of a router in one micro-batch",
             "take a smaller micro-batch");
    }
}

}}  // namespace plumb::executor

#include <algorithm>

#include <fmt/format.h>

#include "executor/device/device_layer.h"
#include "executor/device/device_update.h"
#include "executor/device/run_device.h"
#include "executor/device/stage_rebuild.h"
#include "schedules/error.h"

namespace plumb {
namespace {

void refuse(bool wrong, const char* what, const char* remedy) {
  if (wrong) throw SpecError(fmt::format("a device does not run {} yet: {}", what, remedy));
}

bool has_tied_table(const RunSpec& spec) {
  return std::ranges::any_of(spec.stage_layers, [](const std::vector<Layer>& layers) {
    return std::ranges::any_of(layers, [](const Layer& layer) {
      const auto* head = std::get_if<HeadLayer>(&layer);
      return head != nullptr && head->tied;
    });
  });
}

}  // namespace

void require_device_runnable(const RunSpec& spec) {
  constexpr const char* kCpu = "use --backend cpu";
  const ProcessGrid& grid = spec.grid;
  refuse(grid.tensor * grid.context * grid.expert != 1 || !spec.meshes.empty(), "tensor, context or expert groups",
         "set tp, cp and ep to 1, or use --backend cpu");
  refuse(spec.zero > 0 && spec.layerwise, "ZeRO layer by layer", "gather whole stages, or use --backend cpu");
  refuse(grid.data > 1 && (spec.clip_norm > 0 || spec.half == HalfFormat::kFp16),
         "clipping or a loss scale over replicas",
         "set dp to 1 or train in bf16 without clipping, or use --backend cpu");
  refuse(grid.data > 1 && has_tied_table(spec), "tied tables over replicas", "untie the head, or use --backend cpu");
  for (std::size_t stage = 0; stage < spec.stage_layers.size(); ++stage)
    refuse(rebuilds_some(spec, stage), "recomputation of some of a stage's micro-batches",
           "list an R for each of them or for none, or use --backend cpu");
  refuse(std::ranges::count(stages_with_copies(spec.schedule), true) > 0, "copies of a stage in one schedule", kCpu);
  refuse(!has_device_update(spec.optimizer), "8-bit AdamW and Adafactor", "use adamw, sgd or lion, or --backend cpu");
  refuse(spec.offload_optimizer, "an optimizer whose state is in the host's memory", kCpu);
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    for (const Action& action : actions) {
      refuse(action.part != 0, "slices of sequences", kCpu);
      refuse(action.op >= Op::kOffload, "OFFLOAD, RELOAD, EVICT and LOAD", kCpu);
    }
  for (const std::vector<Layer>& layers : spec.stage_layers)
    for (const Layer& layer : layers) {
      refuse(!has_device_kernels(layer),
             "image models, experts, latent attention, parallel residuals and heads of more than 256 channels", kCpu);
    }
}

}  // namespace plumb

#include "executor/layers/device/loss_step.h"

#include <algorithm>
#include <variant>

namespace plumb { inline namespace executor {
namespace {

/// Returns this rank's part of the classes. logits: [T, columns of this rank]
VocabPart part_of(const StepCall& of, const LayerTensor& logits) {
  VocabPart part{.rows = logits.rows, .columns = logits.columns, .valid = logits.columns};
  const auto* head = std::get_if<HeadLayer>(&of.program.layer());
  if (head == nullptr) return part;
  part.first = of.program.seat().tensor.rank * logits.columns;
  part.valid = std::clamp<std::int64_t>(head->vocab - head->padding - part.first, 0, logits.columns);
  part.softcap = static_cast<float>(head->logit_softcap);
  return part;
}

}  // namespace

void gather_loss_parts(const StepCall& of) {
  const LayerTensor& logits = of.tensor_read(0);
  constexpr std::int64_t kParts = 3;
  float* const own = of.floats_written(0) + of.call.tensor.rank() * kParts * logits.rows;
  of.kernels().cross_entropy_parts(own, of.read(0), of.call.targets, part_of(of, logits));
  of.call.tensor.exchange(CollectiveKind::kAllGather, of.written(0), of.step.exchange()->elements, false);
}

void enqueue_loss(const StepCall& of) {
  const DeviceLayerCall& call = of.call;
  if (of.step.is(KernelKind::kSquaredError))
    return call.kernels.squared_error(call.losses, of.written(0), call.sample_targets, of.rows(), of.columns(),
                                      call.gradient_scale, call.loss_scale);
  const VocabPart part = part_of(of, of.tensor_written(0));
  constexpr std::size_t kLogitsAndTargets = 2;  // the parts are read behind them
  if (of.step.reads.size() == kLogitsAndTargets)
    return call.kernels.cross_entropy(call.losses, of.written(0), call.targets, part, call.gradient_scale,
                                      call.loss_scale);
  call.kernels.cross_entropy_from_parts(call.losses, of.written(0), of.floats_read(kLogitsAndTargets),
                                        of.program.seat().tensor.ranks, call.targets, part, call.gradient_scale,
                                        call.loss_scale);
}

}}  // namespace plumb::executor

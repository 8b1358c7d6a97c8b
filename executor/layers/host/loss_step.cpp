#include "executor/layers/host/loss_step.h"

#include <algorithm>
#include <variant>

#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the tokens of a whole vocabulary, or the classes of a loss.
std::int64_t classes_of(const Layer& layer) {
  if (const auto* head = std::get_if<HeadLayer>(&layer)) return head->vocab - head->padding;
  return std::get<LossLayer>(layer).width;
}

float softcap_of(const Layer& layer) {
  const auto* head = std::get_if<HeadLayer>(&layer);
  return head == nullptr ? 0 : static_cast<float>(head->logit_softcap);
}

/// Returns this rank's part of the classes. logits: [T, columns of this rank]
VocabPart part_of(const HostStep& of, const LayerTensor& logits) {
  const std::int64_t first = of.context().seat.tensor.rank * logits.columns;
  return {.rows = logits.rows,
          .columns = logits.columns,
          .first = first,
          .valid = std::clamp<std::int64_t>(classes_of(of.program.layer()) - first, 0, logits.columns),
          .softcap = softcap_of(of.program.layer())};
}

}  // namespace

void gather_loss_parts(const HostStep& of) {
  const LayerTensor& logits = of.program.tensor(of.step.reads[0]);
  constexpr std::int64_t kParts = 3;
  float* const own = of.written(0) + of.context().seat.tensor.rank * kParts * logits.rows;
  cross_entropy_parts(own, of.read(0), of.tensor_read(1).tokens(), part_of(of, logits));
  of.context().groups.tensor->run(all_gather(of.tensor_written(0).values()));
}

void take_loss(const HostStep& of) {
  const VocabPart part = part_of(of, of.program.tensor(of.step.writes[0]));
  const std::int32_t* const targets = of.tensor_read(1).tokens();
  constexpr std::size_t kLogitsAndTargets = 2;  // the parts are read behind them
  if (of.step.reads.size() == kLogitsAndTargets)
    of.saved.loss = of.kernels().cross_entropy(of.written(0), targets, part.rows, part.columns, of.call.gradient_scale,
                                               part.columns - part.valid, part.softcap);
  else
    of.saved.loss = cross_entropy_from_parts(of.written(0), of.read(kLogitsAndTargets), of.context().seat.tensor.ranks,
                                             targets, part, of.call.gradient_scale);
}

}}  // namespace plumb::executor

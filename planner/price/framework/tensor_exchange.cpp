#include "planner/price/framework/tensor_exchange.h"

namespace plumb { inline namespace planner {

void exchange_tensor(const PassBuilder& pass, const LayerWork& work, const StackSpec& stack, StreamBytes stream,
                     int branches, int ends) {
  if (work.tensor_parallel == 1) return;
  if (work.sequence_parallel) {
    const bool copied = stack.copied_collectives;
    pass.exchange(Group::kTensor, CollectiveKind::kAllGather, stream.gathered, branches);
    if (copied) pass.traffic("gathered rows copied", 2 * branches * stream.gathered, branches);
    if (ends > 0) pass.exchange(Group::kTensor, CollectiveKind::kReduceScatter, stream.summed, ends);
    if (copied && ends > 0) pass.traffic("rows to scatter copied", 2 * ends * stream.summed, ends);
  } else if (ends > 0) {
    pass.exchange(Group::kTensor, CollectiveKind::kAllReduce, stream.summed, ends);
  }
}

}}  // namespace plumb::planner

#pragma once
// The collectives of the tensor group around a layer's column- and row-parallel products (Shoeybi et al. 2019;
// Korthikanti et al. 2022 with sequence parallelism).

#include "planner/price/framework/pass_builder.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Bytes of a stream [T, h]: as it is summed, and as it is gathered.
struct StreamBytes {
  double summed = 0;
  double gathered = 0;
};

/// Adds the collectives of branches that begin, of which `ends` are summed. NCCL gathers and scatters along the first
/// dimension; where that is not the sequence, the whole stream is read and written once more.
void exchange_tensor(const PassBuilder& pass, const LayerWork& work, const StackSpec& stack, StreamBytes stream,
                     int branches, int ends);

}}  // namespace plumb::planner

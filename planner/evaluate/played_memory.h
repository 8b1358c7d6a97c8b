#pragma once
// The memory that PyTorch's allocator reserves on a rank, played: two steps of the rank's actions in their order, each
// layer with the storages of its program (kernels/layer/program/storage.h), from the step that first uses one to the
// last. Weights and gradients stand from the beginning, the optimizer's state from the first step on, as frameworks
// make it. The framework's kernels are others than the program's; the share of what is reserved above what stands is
// taken to be the same.
//
//   const std::vector<PlayedMemory> played = played_memory(plan.training, evaluation, segments);
//   predicted_bytes * played[rank].reserved_share()      // what torch.cuda.max_memory_reserved() says

#include <cstdint>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/price/memory/caching_allocator.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

struct PlayedMemory {
  std::int64_t allocated_bytes = 0;  ///< peak
  std::int64_t reserved_bytes = 0;

  /// Reserved bytes over the allocated ones; 1 where nothing is allocated.
  double reserved_share() const;
};

/// [pipeline rank]; `evaluation` has its lowered order. Empty for layer graphs.
std::vector<PlayedMemory> played_memory(const TrainingSpec& training, const Evaluation& evaluation,
                                        CachingAllocator::Segments segments);

}}  // namespace plumb::planner

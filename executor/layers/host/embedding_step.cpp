#include "executor/layers/host/embedding_step.h"

#include <algorithm>

namespace plumb { inline namespace executor {
namespace {

constexpr std::size_t kPositions = 1;  // the second table

/// Calls visit(element of the own tokens' rows, element of the position table, count) for each run of own tokens.
template <class Visit>
void for_each_run(const HostStep& of, Visit visit) {
  std::int64_t own = 0;
  for (const TokenRange& run : {of.call.place.slice, of.call.place.second_slice}) {
    visit(own, run.first * of.columns(), run.count * of.columns());
    own += run.count * of.columns();
  }
}

EmbeddingSize size_of(const HostStep& of) {
  return {.tokens = of.rows(), .sequence = of.context().work.sequence, .columns = of.columns()};
}

void forward(const HostStep& of) {
  const CpuContext& context = of.context();
  const float* positions = context.seat.tensor.rank == 0 ? of.weight(kPositions) : nullptr;
  Tensor copied;
  if (positions != nullptr && context.seat.context.ranks > 1) {
    copied = context.pool->take(context.work.sequence * of.columns());
    for_each_run(of, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      std::copy_n(positions + from, count, copied.data() + to);
    });
    positions = copied.data();
  } else if (positions != nullptr) {
    positions += context.first_token * of.columns();
  }
  of.kernels().embedding_forward(of.written(0), of.tensor_read(0).tokens(), of.weight(0), positions, size_of(of));
}

void backward(const HostStep& of) {
  const CpuContext& context = of.context();
  const auto add = [&](float* positions) {
    of.kernels().embedding_backward(of.gradient(0), positions, of.read(0), of.tensor_read(1).tokens(), size_of(of));
  };
  if (of.step.gradients.size() <= kPositions) return add(nullptr);
  float* const sums = of.gradient(kPositions);
  if (context.seat.context.ranks == 1) return add(sums + context.first_token * of.columns());
  Tensor own = context.pool->take_zeros(context.work.sequence * of.columns());
  add(own.data());
  for_each_run(of, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) sums[to + i] += own.data()[from + i];
  });
}

}  // namespace

void run_embedding(const HostStep& of) {
  if (of.is_forward()) return forward(of);
  backward(of);
}

}}  // namespace plumb::executor

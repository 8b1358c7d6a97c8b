#include "executor/layers/host/tensor_exchange.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "executor/layers/host/loss_step.h"
#include "kernels/cpu/copy_columns.h"

namespace plumb { inline namespace executor {
namespace {

void gather_rows(const HostStep& of) {
  const LayerTensor &own = of.program.tensor(of.step.reads[0]), &all = of.program.tensor(of.step.writes[0]);
  float* const to = of.written(0) + of.context().seat.tensor.rank * own.rows * all.columns;
  // In latent attention the last of the columns are gathered.
  copy_columns(to, all.columns, of.read(0) + own.columns - all.columns, own.columns, {own.rows, all.columns});
  of.context().groups.tensor->run(all_gather(of.tensor_written(0).values()));
}

void scatter_sum(const HostStep& of) {
  of.context().groups.tensor->run(reduce_scatter(of.tensor_read(0).values()));
  const std::int64_t elements = of.tensor_written(0).elements();
  std::copy_n(of.read(0) + of.context().seat.tensor.rank * elements, elements, of.written(0));
}

/// Adds the sum of all ranks' gradients of parameters that each of them has. The parameters lie behind each other.
void add_replicated(const HostStep& of) {
  of.context().groups.tensor->run(all_reduce(of.tensor_written(0).values()));
  float* const gradients = of.gradient(0);
  const std::span<const float> sums = of.tensor_written(0).values();
  for (std::size_t i = 0; i < sums.size(); ++i) gradients[i] += sums[i];
}

/// Replaces the gradients of keys and values that neighbouring ranks share by their sum. It is one sum over the whole
/// group, in which each set of sharers has columns of its own.
void sum_shared_heads(const HostStep& of) {
  const auto& block = std::get<TransformerLayer>(of.program.share());
  const TensorSeat& seat = of.context().seat.tensor;
  const LayerTensor& rows = of.program.tensor(of.step.writes[0]);
  const std::int64_t width = rows.columns, columns = 2 * block.kv_heads * block.head_size, first = width - columns;
  Tensor& all = of.tensor_written(1);
  std::ranges::fill(all.values(), 0.0F);
  float* const own = all.data() + seat.rank / kv_sharers(of.program.layer(), seat.ranks) * rows.rows * columns;
  for (std::int64_t row = 0; row < rows.rows; ++row)
    std::copy_n(of.written(0) + row * width + first, columns, own + row * columns);
  of.context().groups.tensor->run(all_reduce(all.values()));
  for (std::int64_t row = 0; row < rows.rows; ++row)
    std::copy_n(own + row * columns, columns, of.written(0) + row * width + first);
}

}  // namespace

void run_tensor_exchange(const HostStep& of) {
  const Exchange& exchange = *of.step.exchange();
  switch (exchange.kind) {
    case ExchangeKind::kAllReduce:
      if (!of.step.gradients.empty()) return add_replicated(of);
      if (of.step.writes.size() > 1) return sum_shared_heads(of);
      of.context().groups.tensor->run(all_reduce(of.tensor_written(0).values()));
      return;
    case ExchangeKind::kReduceScatter:
      return scatter_sum(of);
    case ExchangeKind::kAllGather:
      return exchange.type == StoredType::kElement ? gather_rows(of) : gather_loss_parts(of);
    case ExchangeKind::kAllToAll:
    case ExchangeKind::kRing:
    case ExchangeKind::kRingSum:
      assert(!"a tensor group has no such exchange");
  }
}

}}  // namespace plumb::executor

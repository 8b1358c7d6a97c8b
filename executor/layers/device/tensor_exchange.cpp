#include "executor/layers/device/tensor_exchange.h"

#include <cassert>
#include <variant>

#include "executor/layers/device/loss_step.h"

namespace plumb { inline namespace executor {
namespace {

bool is_stored(const Exchange& exchange) {
  return exchange.type == StoredType::kElement;
}

/// Gathers rows, or the last columns of rows that have more.
void gather_rows(const StepCall& of, const Exchange& exchange) {
  const LayerTensor& own = of.tensor_read(0);
  const std::int64_t columns = of.tensor_written(0).columns, element = of.program.element_bytes();
  const std::int64_t block = own.rows * columns * element;
  std::byte* const to = of.written(0) + of.call.tensor.rank() * block;
  if (own.columns == columns)
    of.kernels().copy(to, of.read(0), block);
  else
    of.kernels().copy_columns(to, columns, of.read(0) + (own.columns - columns) * element, own.columns,
                              {own.rows, columns});
  of.call.tensor.exchange(CollectiveKind::kAllGather, of.written(0), exchange.elements, true);
}

/// Leaves the own block where it is, unless the step writes it elsewhere.
void scatter_sum(const StepCall& of, const Exchange& exchange) {
  of.call.tensor.exchange(CollectiveKind::kReduceScatter, of.read(0), exchange.elements, true);
  if (of.program.is_stored_at(of.step.writes[0], of.step.reads[0])) return;
  const std::int64_t block = of.tensor_written(0).bytes(of.program.element_bytes());
  of.kernels().copy(of.written(0), of.read(0) + of.call.tensor.rank() * block, block);
}

/// Adds the sum of all ranks' gradients of parameters that each of them has. The parameters lie behind each other.
void add_replicated(const StepCall& of, const Exchange& exchange) {
  of.call.tensor.exchange(CollectiveKind::kAllReduce, of.written(0), exchange.elements, false);
  of.kernels().add_gradients(of.gradient(0), of.gradient(0), of.floats_written(0), exchange.elements);
}

/// Replaces the gradients of keys and values that neighbouring ranks share by their sum. It is one sum over the whole
/// group, in which each set of sharers has columns of its own.
void sum_shared_heads(const StepCall& of) {
  const PlacedProgram& program = of.program;
  const auto& block = std::get<TransformerLayer>(program.share());
  const TensorSeat& seat = program.seat().tensor;
  const std::int64_t rows = of.tensor_written(0).rows, width = of.tensor_written(0).columns;
  const std::int64_t columns = 2 * block.kv_heads * block.head_size;
  const std::int64_t each = rows * columns * program.element_bytes();
  const int sharers = kv_sharers(program.layer(), seat.ranks);
  const std::int64_t sets = seat.ranks / sharers;
  std::byte* const all = of.written(1);
  std::byte* const own = all + seat.rank / sharers * each;
  std::byte* const heads = of.written(0) + (width - columns) * program.element_bytes();
  of.kernels().fill_zero(of.floats_written(1), (sets * each + 3) / 4);
  of.kernels().copy_columns(own, columns, heads, width, {rows, columns});
  of.call.tensor.exchange(CollectiveKind::kAllReduce, all, sets * rows * columns, true);
  of.kernels().copy_columns(heads, width, own, columns, {rows, columns});
}

}  // namespace

void enqueue_tensor_exchange(const StepCall& of) {
  const Exchange& exchange = *of.step.exchange();
  switch (exchange.kind) {
    case ExchangeKind::kAllReduce:
      if (!of.step.gradients.empty()) return add_replicated(of, exchange);
      if (of.step.writes.size() > 1) return sum_shared_heads(of);
      return of.call.tensor.exchange(CollectiveKind::kAllReduce, of.written(0), exchange.elements, is_stored(exchange));
    case ExchangeKind::kReduceScatter:
      return scatter_sum(of, exchange);
    case ExchangeKind::kAllGather:
      return is_stored(exchange) ? gather_rows(of, exchange) : gather_loss_parts(of);
    case ExchangeKind::kAllToAll:
    case ExchangeKind::kRing:
    case ExchangeKind::kRingSum:
      assert(!"a tensor group has no such exchange");
  }
}

}}  // namespace plumb::executor

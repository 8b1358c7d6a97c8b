#include "executor/layers/device/expert_exchange.h"

#include <variant>

#include "kernels/layer/expert_rows.h"
#include "kernels/layer/layer_ends.h"

namespace plumb { inline namespace executor {

DeviceExpertExchange::DeviceExpertExchange(const PlacedProgram& program) : routes_(program.plain()) {
  const auto& block = std::get<TransformerLayer>(program.share());
  const DeviceSeat& seat = program.seat();
  const LayerWork& own = program.own();
  picked_ = tokens_in(own) * block.experts_per_token;
  hidden_ = block.hidden;
  const RoutedTokens tokens{.sequences = own.microbatch, .tokens = own.sequence, .sequence = seat.whole_sequence(own)};
  blocks_ = {.ranks = seat.experts.ranks,
             .experts = block.experts / seat.experts.ranks,
             .rows = most_rows_to_expert_rank(block, tokens, seat.experts.ranks)};
}

void DeviceExpertExchange::enqueue(const StepCall& of) const {
  switch (of.step.exchange()->type) {
    case StoredType::kInteger:
      return share_routes(of);
    case StoredType::kElement:
      return exchange_rows(of);
    case StoredType::kSingle:
      return exchange_weights(of);
  }
}

/// Places of picks become places in blocks, and the own experts' rows get theirs from the counts of all ranks.
void DeviceExpertExchange::share_routes(const StepCall& of) const {
  std::int32_t* const sent = of.integers_written(2);
  std::int32_t* const received = sent + blocks_.all_experts();
  of.kernels().place_in_blocks(routes_.in(of), sent, picked_, blocks_);
  of.call.experts.all_to_all_words(received, sent, blocks_.all_experts());
  of.kernels().place_received(of.integers_written(0), of.integers_written(1), received, blocks_);
}

/// Brings rows to the experts, {rows} -> {rows by expert, rows that have come}, or back from them, {rows by expert} ->
/// {rows that go, rows that have come back in their place}.
void DeviceExpertExchange::exchange_rows(const StepCall& of) const {
  const CopyRowsSize received{blocks_.all_rows(), 1, hidden_};
  const std::int32_t* const places = of.integers_at(of.step.reads[1]);
  const std::int64_t elements = blocks_.all_rows() * hidden_, element_bytes = of.program.element_bytes();
  if (of.step.writes[1] == of.step.reads[0]) {
    of.kernels().sum_placed_rows(of.written(0), of.read(0), places, nullptr, received);
    return of.call.experts.all_to_all(of.written(1), of.written(0), elements, element_bytes);
  }
  of.call.experts.all_to_all(of.written(1), of.read(0), elements, element_bytes);
  of.kernels().place_rows(of.written(0), of.written(1), places, received);
}

/// Brings the weights of picks to the experts, or their gradients back.
void DeviceExpertExchange::exchange_weights(const StepCall& of) const {
  const bool is_return = of.step.writes.size() == 1;
  if (is_return) return of.call.experts.all_to_all_words(of.floats_written(0), of.floats_read(0), blocks_.all_rows());
  const DeviceRoutes routes = routes_.in(of);
  of.kernels().place_singles(of.floats_written(0), routes.weights, routes.places, picked_);
  of.call.experts.all_to_all_words(of.floats_written(1), of.floats_written(0), blocks_.all_rows());
}

}}  // namespace plumb::executor

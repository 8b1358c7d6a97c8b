#include "executor/layers/host/expert_exchange.h"

#include <algorithm>
#include <utility>

namespace plumb { inline namespace executor {
namespace {

std::size_t ranks_of(const CpuContext& context) {
  const Communicator* group = context.groups.expert;
  return group == nullptr ? 1 : static_cast<std::size_t>(group->members());
}

/// Returns the running sums of `counts` by rank, from the first on; each rank has `each` of the counts.
std::vector<std::int64_t> bounds_of(std::span<const std::int32_t> counts, std::size_t each) {
  std::vector<std::int64_t> bounds{0};
  for (std::size_t i = 0; i < counts.size(); i += each) {
    std::int64_t rows = 0;
    for (const std::int32_t count : counts.subspan(i, each)) rows += count;
    bounds.push_back(bounds.back() + rows);
  }
  return bounds;
}

}  // namespace

ExpertExchange::ExpertExchange(const CpuContext& context, std::span<const std::int32_t> sent,
                               std::span<const std::int32_t> received, const ExpertRoom& room)
    : context_(context),
      received_(received),
      room_(room),
      rows_of_expert_(received.size() / ranks_of(context)),
      sent_bounds_(bounds_of(sent, rows_of_expert_.size())),
      received_bounds_(bounds_of(received, rows_of_expert_.size())) {
  for (std::size_t i = 0; i < received.size(); ++i) rows_of_expert_[i % rows_of_expert_.size()] += received[i];
}

void ExpertExchange::share_counts(const CpuContext& context, std::span<std::int32_t> received,
                                  std::span<const std::int32_t> sent) {
  if (context.groups.expert == nullptr) {
    std::ranges::copy(sent, received.begin());
    return;
  }
  Tensor outgoing = context.pool->take(static_cast<std::int64_t>(sent.size()));
  Tensor incoming = context.pool->take(static_cast<std::int64_t>(sent.size()));
  std::ranges::copy(sent, outgoing.tokens());
  context.groups.expert->run(all_to_all(incoming.values(), std::as_const(outgoing).values()));
  std::copy_n(incoming.tokens(), received.size(), received.begin());
}

void ExpertExchange::exchange(float* incoming, const float* outgoing, const std::vector<std::int64_t>& incoming_rows,
                              const std::vector<std::int64_t>& outgoing_rows, std::int64_t columns) const {
  const auto elements = [columns](std::vector<std::int64_t> bounds) {
    for (std::int64_t& bound : bounds) bound *= columns;
    return bounds;
  };
  const std::vector<std::int64_t> in = elements(incoming_rows), out = elements(outgoing_rows);
  context_.groups.expert->run(all_to_all({incoming, static_cast<std::size_t>(in.back())},
                                         {outgoing, static_cast<std::size_t>(out.back())}, in, out));
}

/// Calls visit(first row in the order of ranks, first row in the order of experts, rows) for each rank and own expert.
template <class Visit>
void ExpertExchange::for_each_block(Visit visit) const {
  const std::size_t experts = rows_of_expert_.size();
  std::vector<std::int64_t> next{0};  // [own expert]
  for (const std::int64_t rows : rows_of_expert_) next.push_back(next.back() + rows);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < received_.size(); ++i) {
    visit(first, next[i % experts], received_[i]);
    first += received_[i];
    next[i % experts] += received_[i];
  }
}

Tensor ExpertExchange::take_sent(std::int64_t columns) const {
  return context_.pool->take_within(sent_rows() * columns, room_.sent * columns);
}

Tensor ExpertExchange::take_rows(std::int64_t rows, std::int64_t columns) const {
  return context_.pool->take_within(rows * columns, room_.received * columns);
}

void ExpertExchange::to_experts(float* by_expert, const float* rows, std::int64_t columns) const {
  if (context_.groups.expert == nullptr) {
    std::copy_n(rows, sent_rows() * columns, by_expert);
    return;
  }
  Tensor incoming = take_rows(expert_rows(), columns);
  exchange(incoming.data(), rows, received_bounds_, sent_bounds_, columns);
  for_each_block([&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy_n(incoming.data() + from * columns, count * columns, by_expert + to * columns);
  });
}

void ExpertExchange::from_experts(float* rows, const float* by_expert, std::int64_t columns) const {
  if (context_.groups.expert == nullptr) {
    std::copy_n(by_expert, sent_rows() * columns, rows);
    return;
  }
  Tensor outgoing = take_rows(expert_rows(), columns);
  for_each_block([&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::copy_n(by_expert + from * columns, count * columns, outgoing.data() + to * columns);
  });
  exchange(rows, outgoing.data(), sent_bounds_, received_bounds_, columns);
}

}}  // namespace plumb::executor

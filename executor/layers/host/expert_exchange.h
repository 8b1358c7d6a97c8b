#pragma once
// The all-to-all between the tokens and the experts of an expert group, and back. Each rank's rows, in the order of all
// experts, become the rows of its own experts, one expert behind the other and, within an expert, rank by rank. In a
// group of one the rows stay where they are.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/layers/host/layer_call.h"

namespace plumb { inline namespace executor {

/// The most rows that a rank can send, and that its own experts can have, whatever the router picks.
struct ExpertRoom {
  std::int64_t sent = 0;
  std::int64_t received = 0;
};

class ExpertExchange {
 public:
  /// sent: [E] rows of each expert on this rank; received: [ranks, E / ranks] rows that each rank has for each own
  /// expert (share_counts()). Both must outlive the exchange.
  ExpertExchange(const CpuContext& context, std::span<const std::int32_t> sent, std::span<const std::int32_t> received,
                 const ExpertRoom& room);

  /// Fills `received` from the ranks' `sent`.
  static void share_counts(const CpuContext& context, std::span<std::int32_t> received,
                           std::span<const std::int32_t> sent);

  std::int64_t sent_rows() const { return sent_bounds_.back(); }
  std::int64_t expert_rows() const { return received_bounds_.back(); }

  /// Rows of each expert on this rank. [own expert]
  const std::vector<std::int64_t>& rows_of_expert() const { return rows_of_expert_; }

  /// Return tensors of rows in blocks that have room for the most rows, since the number of rows differs from step to
  /// step: steps that pick otherwise take no new memory.
  Tensor take_sent(std::int64_t columns) const;
  Tensor take_rows(std::int64_t rows, std::int64_t columns) const;

  /// rows: [sent_rows, columns] -> by_expert: [expert_rows, columns]
  void to_experts(float* by_expert, const float* rows, std::int64_t columns) const;

  /// by_expert: [expert_rows, columns] -> rows: [sent_rows, columns]
  void from_experts(float* rows, const float* by_expert, std::int64_t columns) const;

 private:
  template <class Visit>
  void for_each_block(Visit visit) const;
  void exchange(float* incoming, const float* outgoing, const std::vector<std::int64_t>& incoming_rows,
                const std::vector<std::int64_t>& outgoing_rows, std::int64_t columns) const;

  const CpuContext& context_;
  std::span<const std::int32_t> received_;
  ExpertRoom room_;
  std::vector<std::int64_t> rows_of_expert_;   // [own expert]
  std::vector<std::int64_t> sent_bounds_;      // [ranks + 1] rows to each rank
  std::vector<std::int64_t> received_bounds_;  // [ranks + 1] rows from each rank
};

}}  // namespace plumb::executor

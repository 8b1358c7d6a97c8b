#include "executor/training/rank_outcome_bytes.h"

#include <algorithm>

#include "executor/transport/value_bytes.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::size_t kNumbers = 7;

}  // namespace

std::string to_bytes(const RankOutcome& outcome) {
  std::string bytes;
  put_timelines(bytes, outcome.timelines);
  put_values(bytes, outcome.ends);
  for (const auto* kind : {&outcome.losses, &outcome.balance_losses}) {
    put_values(bytes, std::vector<std::uint64_t>{kind->size()});
    for (const std::vector<MicrobatchLoss>& losses : *kind) put_values(bytes, losses);
  }
  put_values(bytes, outcome.loss_scales);
  put_values(bytes, std::vector<std::int64_t>{outcome.skipped_steps, outcome.peak_memory_bytes, outcome.peak_host_bytes,
                                              outcome.allocations, outcome.parameter_bytes.weights,
                                              outcome.parameter_bytes.gradients, outcome.parameter_bytes.optimizer});
  put_values(bytes, std::vector<std::int64_t>(outcome.tensor_group_bytes.begin(), outcome.tensor_group_bytes.end()));
  return bytes;
}

RankOutcome rank_outcome_from_bytes(std::string_view bytes) {
  ValueBytes values(bytes);
  RankOutcome outcome;
  outcome.timelines = get_timelines(values);
  outcome.ends = values.get<SimTime>();
  for (auto* kind : {&outcome.losses, &outcome.balance_losses}) {
    const std::vector<std::uint64_t> replays = values.get<std::uint64_t>();
    for (std::uint64_t i = 0; i < (replays.empty() ? 0 : replays.front()); ++i)
      kind->push_back(values.get<MicrobatchLoss>());
  }
  outcome.loss_scales = values.get<double>();
  std::vector<std::int64_t> numbers = values.get<std::int64_t>();
  std::vector<std::int64_t> exchanged = values.get<std::int64_t>();
  values.require_end();
  exchanged.resize(kCollectiveKindCount);
  std::ranges::copy(exchanged, outcome.tensor_group_bytes.begin());
  numbers.resize(kNumbers);
  outcome.skipped_steps = numbers[0];
  outcome.peak_memory_bytes = numbers[1];
  outcome.peak_host_bytes = numbers[2];
  outcome.allocations = numbers[3];
  outcome.parameter_bytes = {.weights = numbers[4], .gradients = numbers[5], .optimizer = numbers[6]};
  return outcome;
}

}}  // namespace plumb::executor

#include "executor/training/device/run_linked_rank.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "executor/spec/run_shape.h"
#include "executor/training/rank_outcome_bytes.h"
#include "executor/training/run_result.h"
#include "executor/training/training_plan.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

NcclElement stored_as(std::optional<HalfFormat> half) {
  if (!half) return NcclElement::kFp32;
  return *half == HalfFormat::kBf16 ? NcclElement::kBf16 : NcclElement::kFp16;
}

void require_apart(const RunSpec& spec) {
  if (spec.resume != nullptr)
    throw SpecError("a training over several GPUs is not resumed yet: take --gpus one, or use --backend cpu");
}

/// Shifts the times of each replay so that they count from its beginning on the first rank. All ranks must have one
/// clock.
void set_to_common_start(RankOutcome& outcome, const std::vector<std::int64_t>& own,
                         const std::vector<std::int64_t>& first) {
  for (std::size_t replay = 0; replay < outcome.timelines.size() && replay < own.size(); ++replay) {
    const SimTime later = to_sim_time(Seconds{1e-9 * static_cast<double>(own[replay] - first[replay])});
    for (auto& span : outcome.timelines[replay].spans) {
      span.start += later;
      span.end += later;
    }
    outcome.ends[replay] += later;
  }
}

/// Returns the time at which each replay began on the first rank to begin it, if all ranks read one clock; otherwise
/// this rank's own times.
std::vector<std::int64_t> first_starts(RankBoard& board, const std::vector<std::int64_t>& own) {
  std::string clock;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> clock;
  std::string text = clock + "\n";
  for (const std::int64_t start : own) text += fmt::format("{}\n", start);
  std::vector<std::int64_t> first = own;
  for (const std::string& other : exchanged(board, text)) {
    std::istringstream lines(other);
    std::string other_clock;
    lines >> other_clock;
    if (other_clock != clock) return own;
    std::int64_t start = 0;
    for (std::size_t replay = 0; replay < first.size() && lines >> start; ++replay)
      first[replay] = std::min(first[replay], start);
  }
  return first;
}

RankOutcome trained(const RunSpec& spec, const LinkedRank& rank) {
  LinkedCalls links(*rank.port, *rank.board, stored_as(spec.half), spec.watchdog);
  const std::unique_ptr<DeviceMachine> machine = rank.make_machine(links);
  DeviceRankResult result = run_device_rank(spec, rank.board->rank(), *machine, rank.options);
  links.leave();
  set_to_common_start(result.outcome, links.starts_ns(), first_starts(*rank.board, links.starts_ns()));
  return std::move(result.outcome);
}

}  // namespace

std::optional<RunResult> run_linked_rank(const RunSpec& spec, const LinkedRank& rank) {
  RankBoard& board = *rank.board;
  const int needed = world_size(rank_grid_of(spec));
  if (board.ranks() != needed)
    throw SpecError(fmt::format("the schedule has {} ranks and {} were started", needed, board.ranks()));
  try {
    require_same_plan(board, fingerprint(spec));
    require_device_runnable(spec);
    require_apart(spec);
    require_devices_apart(board, rank.device);
    const std::vector<std::string> all = exchanged(board, to_bytes(trained(spec, rank)));
    if (board.rank() != 0) return {};
    std::vector<RankOutcome> outcomes;
    for (const std::string& bytes : all) outcomes.push_back(rank_outcome_from_bytes(bytes));
    return run_result(spec, plan_training(spec), std::move(outcomes));
  } catch (const RunAborted&) {
    throw;
  } catch (const RunError& error) {
    if (board.tell(error.what())) throw;
    throw RunAborted(error.what());
  }
}

}}  // namespace plumb::executor

#include "executor/nccl/run_linked_rank.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/check_run_spec.h"
#include "executor/run_result.h"
#include "executor/training/rank_outcome_bytes.h"
#include "executor/training/training_plan.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb {
namespace {

NcclElement stored_as(std::optional<HalfFormat> half) {
  if (!half) return NcclElement::kFp32;
  return *half == HalfFormat::kBf16 ? NcclElement::kBf16 : NcclElement::kFp16;
}

RankOutcome trained(const RunSpec& spec, const LinkedRank& rank) {
  LinkedCalls links(*rank.port, *rank.board, stored_as(spec.half), spec.watchdog);
  const std::unique_ptr<DeviceMachine> machine = rank.make_machine(links);
  DeviceRankResult result = run_device_rank(spec, rank.board->rank(), *machine, rank.options);
  links.leave();
  if (rank.see) rank.see(result);
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

}  // namespace plumb

#include "schedules/forms/torch_csv.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/schedule_shape.h"

namespace plumb {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::size_t kShownCellLength = 40;

bool in_compute_only(Op op) {
  return op <= Op::kWeightGrad;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

TorchCsv read_torch_csv(std::string_view text, const std::string& file) {
  TorchCsv result;
  std::size_t dropped = 0;
  for (std::size_t row = 1; !text.empty(); ++row) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);

    std::vector<Action>& actions = result.schedule.ranks.emplace_back();
    for (std::size_t column = 1;; ++column) {
      const std::size_t comma = line.find(',');
      const std::string_view cell = trim(line.substr(0, comma));
      if (!cell.empty()) {
        const auto fail = [&](std::string_view what) {
          throw ScheduleError(fmt::format("{}: row {}, column {}: \"{}\" {}", file, row, column,
                                          cell.substr(0, kShownCellLength), what));
        };
        const std::optional<Action> action = parse_action(cell);
        if (!action || action->part != 0)
          fail("is not an action: write <stage><F, B, I or W><micro-batch> and nothing behind it");
        if (action->op == Op::kReduceGrad) {
          ++dropped;
        } else if (!in_compute_only(action->op)) {
          fail("does not belong in a compute-only file: keep F, B, I and W");
        } else {
          actions.push_back(*action);
        }
      }
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
  }
  if (dropped > 0)
    result.notes.push_back(
        fmt::format("{}: {} REDUCE_GRAD left out: lowering adds what a layout needs", file, dropped));
  infer_shape(result.schedule);
  return result;
}

std::string write_torch_csv(const Schedule& schedule) {
  const auto refuse = [&schedule](const std::string& what) {
    throw ScheduleError(fmt::format("PyTorch's compute-only CSV cannot express {} of {}", what, schedule.name));
  };
  if (is_asynchronous(schedule)) refuse(fmt::format("the weight policy {}", policy_name(schedule.weights)));
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    if (schedule.stages[s].lane != 0 || schedule.stages[s].model_part != static_cast<int>(s))
      refuse("the stage copies");
  }
  std::string text;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    bool first = true;
    for (const Action& action : schedule.ranks[r]) {
      if (!in_compute_only(action.op) || action.part != 0 || action.overlaps_next) {
        refuse(fmt::format("{} on rank {}", to_text(action), r));
      }
      if (!std::exchange(first, false)) text += ',';
      text += to_text(action);
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace plumb

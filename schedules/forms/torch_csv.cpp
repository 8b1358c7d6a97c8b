#include "schedules/forms/torch_csv.h"

#include <algorithm>
#include <optional>

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

bool is_overlap_of_torch(const Action& first, const Action& second) {
  return first.op == Op::kForward && gives_input_gradient(second.op);
}

/// What a cell says: one action, or an overlapped pair "(0F3;7B1)OVERLAP_F_B"; empty if it is neither.
std::vector<Action> parse_cell(std::string_view cell) {
  constexpr std::string_view kPairEnd = ")OVERLAP_F_B";
  if (!cell.starts_with('(') || !cell.ends_with(kPairEnd)) {
    const std::optional<Action> action = parse_action(cell);
    return action && action->part == 0 ? std::vector{*action} : std::vector<Action>{};
  }
  cell = cell.substr(1, cell.size() - 1 - kPairEnd.size());
  const std::size_t semicolon = std::min(cell.find(';'), cell.size());
  std::vector<Action> pair = parse_cell(cell.substr(0, semicolon));
  const std::vector<Action> second = parse_cell(cell.substr(std::min(semicolon + 1, cell.size())));
  if (pair.size() != 1 || second.size() != 1 || !is_overlap_of_torch(pair[0], second[0])) return {};
  pair[0].overlaps_next = true;
  pair.push_back(second[0]);
  return pair;
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
        const std::vector<Action> said = parse_cell(cell);
        if (said.empty()) {
          fail(cell.starts_with('(')
                   ? "is not a pair: write (<stage>F<micro-batch>;<stage>B<micro-batch>)OVERLAP_F_B"
                   : "is not an action: write <stage><F, B, I or W><micro-batch> and nothing behind it");
        }
        if (said.front().op == Op::kReduceGrad) {
          ++dropped;
        } else if (!in_compute_only(said.front().op)) {
          fail("does not belong in a compute-only file: keep F, B, I and W");
        } else {
          actions.insert(actions.end(), said.begin(), said.end());
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
    const std::vector<Action>& actions = schedule.ranks[r];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (!in_compute_only(action.op) || action.part != 0) refuse(fmt::format("{} on rank {}", to_text(action), r));
      const bool opens = action.overlaps_next;
      const bool closes = i > 0 && actions[i - 1].overlaps_next;
      if (opens && (closes || i + 1 == actions.size() || !is_overlap_of_torch(action, actions[i + 1]))) {
        refuse(fmt::format("the pair of {} on rank {}", to_text(action), r));
      }
      if (i > 0) text += closes ? ';' : ',';
      if (opens) text += '(';
      text += to_text(action);
      if (closes) text += ")OVERLAP_F_B";
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace plumb

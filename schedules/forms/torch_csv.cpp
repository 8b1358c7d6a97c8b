#include "schedules/forms/torch_csv.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/action_remedy.h"
#include "schedules/forms/schedule_shape.h"
#include "schedules/forms/trimmed.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::string_view kPairEnd = ")OVERLAP_F_B";
constexpr std::size_t kShownCellLength = 40;
constexpr std::size_t kLongestToken = 64;
constexpr std::size_t kMostRows = 1'000'000;

bool is_torch_compute(Op op) {
  return op <= Op::kWeightGrad;
}

/// True for the operations that only the compute-comms form has.
bool is_torch_communication(Op op) {
  return is_message(op) || op == Op::kUnshard || op == Op::kReshard;
}

bool is_torch_op(Op op) {
  return is_torch_compute(op) || is_torch_communication(op) || op == Op::kReduceGrad;
}

bool is_overlap_of_torch(const Action& first, const Action& second) {
  return first.op == Op::kForward && gives_input_gradient(second.op);
}

/// The content of a cell: an action, or the two of a pair; empty if it is neither. `dropped` is the text behind it.
struct Cell {
  std::vector<Action> actions;
  std::string_view dropped;
};

Cell parse_single(std::string_view text, TorchReading reading) {
  const std::size_t shortest = reading == TorchReading::kStrict ? text.size() : 1;
  for (std::size_t length = std::min(text.size(), kLongestToken); length >= shortest && length > 0; --length) {
    const std::optional<Action> action = parse_action(text.substr(0, length));
    if (action && action->part == 0 && is_torch_op(action->op)) return {{*action}, text.substr(length)};
  }
  return {};
}

Cell parse_cell(std::string_view text, TorchReading reading) {
  if (!text.starts_with('(') || !text.ends_with(kPairEnd)) return parse_single(text, reading);
  text = text.substr(1, text.size() - 1 - kPairEnd.size());
  const std::size_t semicolon = std::min(text.find(';'), text.size());
  const Cell first = parse_single(text.substr(0, semicolon), TorchReading::kStrict);
  const Cell second = parse_single(text.substr(std::min(semicolon + 1, text.size())), TorchReading::kStrict);
  if (first.actions.empty() || second.actions.empty()) return {};
  Cell pair{{first.actions[0], second.actions[0]}, {}};
  if (!is_overlap_of_torch(pair.actions[0], pair.actions[1])) return {};
  pair.actions[0].overlaps_next = true;
  return pair;
}

/// Returns the text of a cell without the quotes that spreadsheets and csv.QUOTE_ALL put around it.
std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.size() < 2 || !text.starts_with('"') || !text.ends_with('"')) return text;
  return trimmed(text.substr(1, text.size() - 2));
}

/// Returns the separator of cells. Where there is no comma, spreadsheets of many countries write semicolons, and text
/// that is copied out of them has tabs. Pairs have semicolons of their own.
char separator_of(std::string_view text) {
  if (text.find(',') != std::string_view::npos) return ',';
  if (text.find('\t') != std::string_view::npos) return '\t';
  return text.find(';') != std::string_view::npos && text.find('(') == std::string_view::npos ? ';' : ',';
}

/// A place in the file, for messages.
struct CellPlace {
  std::size_t row = 0;
  std::size_t column = 0;
};

class Reader {
 public:
  Reader(const std::string& file, TorchReading reading) : file_(file), reading_(reading) {}

  TorchCsv read(std::string_view text) {
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);  // blank lines at the end are no ranks
    separator_ = separator_of(text);
    for (std::size_t row = 1; !text.empty(); ++row) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_row(row, text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (communicates_ && first_empty_) fail(*first_empty_, "", "is empty: the compute-comms form has no idle slots");
    if (!communicates_) drop_reductions();
    infer_shape(result_.schedule);
    return std::move(result_);
  }

 private:
  void read_row(std::size_t row, std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (row > kMostRows)
      fail({row, 1}, line, fmt::format("begins one rank more than {}, the most there can be", kMostRows));
    std::vector<Action>& actions = result_.schedule.ranks.emplace_back();
    for (std::size_t column = 1;; ++column) {
      const std::size_t comma = line.find(separator_);
      read_cell({row, column}, unquoted(line.substr(0, comma)), actions);
      if (comma == std::string_view::npos) return;
      line.remove_prefix(comma + 1);
    }
  }

  void read_cell(const CellPlace& place, std::string_view text, std::vector<Action>& actions) {
    if (text.empty()) {
      if (!first_empty_) first_empty_ = place;
      return;
    }
    const Cell cell = parse_cell(text, reading_);
    if (cell.actions.empty()) {
      fail(place, text,
           text.starts_with('(')
               ? "is not a pair: write (<stage>F<micro-batch>;<stage>B<micro-batch>)OVERLAP_F_B"
               : action_remedy(text,
                               "is not an action: write <stage><F, B, I or W><micro-batch> and nothing behind it"));
    }
    if (!cell.dropped.empty()) {
      result_.notes.push_back(fmt::format("{}: row {}, column {}: \"{}\" behind {} left out", file_, place.row,
                                          place.column, cell.dropped.substr(0, kShownCellLength),
                                          to_text(cell.actions[0])));
    }
    communicates_ = communicates_ || is_torch_communication(cell.actions[0].op);
    actions.insert(actions.end(), cell.actions.begin(), cell.actions.end());
  }

  void drop_reductions() {
    std::size_t dropped = 0;
    for (std::vector<Action>& actions : result_.schedule.ranks) {
      dropped += std::erase_if(actions, [](const Action& action) { return action.op == Op::kReduceGrad; });
    }
    if (dropped == 0) return;
    result_.notes.push_back(
        fmt::format("{}: {} REDUCE_GRAD left out: lowering adds what a layout needs", file_, dropped));
  }

  [[noreturn]] void fail(const CellPlace& place, std::string_view text, std::string_view what) const {
    throw ScheduleError(fmt::format("{}: row {}, column {}: \"{}\" {}", file_, place.row, place.column,
                                    text.substr(0, kShownCellLength), what));
  }

  const std::string& file_;
  TorchReading reading_;
  TorchCsv result_;
  char separator_ = ',';
  bool communicates_ = false;
  std::optional<CellPlace> first_empty_;
};

}  // namespace

TorchCsv read_torch_csv(std::string_view text, const std::string& file, TorchReading reading) {
  return Reader(file, reading).read(text);
}

std::string write_torch_csv(const Schedule& schedule) {
  const auto refuse = [&schedule](const std::string& what) {
    throw ScheduleError(fmt::format("PyTorch's CSV cannot express {} of {}", what, schedule.name));
  };
  if (is_asynchronous(schedule)) refuse(fmt::format("the weight policy {}", policy_name(schedule.weights)));
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    if (schedule.stages[s].lane != 0 || schedule.stages[s].model_part != static_cast<int>(s))
      refuse("the stage copies or shards");
  }
  std::string text;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::vector<Action>& actions = schedule.ranks[r];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (!is_torch_op(action.op) || action.part != 0) refuse(fmt::format("{} on rank {}", to_text(action), r));
      const bool opens = action.overlaps_next;
      const bool closes = i > 0 && actions[i - 1].overlaps_next;
      if (opens && (closes || i + 1 == actions.size() || !is_overlap_of_torch(action, actions[i + 1]))) {
        refuse(fmt::format("the pair of {} on rank {}", to_text(action), r));
      }
      if (i > 0) text += closes ? ';' : ',';
      if (opens) text += '(';
      text += to_text(action);
      if (closes) text += kPairEnd;
    }
    text += "\r\n";
  }
  return text;
}

}}  // namespace plumb::schedules

#include "planner/logs/timer_table.h"

#include <array>
#include <optional>
#include <utility>

#include "planner/logs/text_lines.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::string_view kMegatronHead = "time across ranks (ms):";
constexpr std::string_view kDeepSpeedHead = "time (ms) |";

/// Returns "forward-compute" and "(400.11, 480.22)" of one of Megatron's lines; nothing of another line.
std::optional<std::pair<std::string_view, std::string_view>> named_time(std::string_view line) {
  const std::size_t colon = line.rfind(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> words = words_of(line.substr(0, colon));
  if (words.empty() || words.size() > 2) return std::nullopt;
  if (words.size() == 2 && words[1].find_first_not_of('.') != std::string_view::npos) return std::nullopt;
  return std::pair{words[0], line.substr(colon + 2)};
}

}  // namespace

void TimerTableReader::add(std::string_view name, double least, double most) {
  if (!(least > 0) || !(most >= least)) return;
  auto timer = timers_.find(name);
  if (timer == timers_.end()) {
    if (timers_.size() == kMostTimers) return;
    timer = timers_.try_emplace(std::string(name)).first;
  }
  timer->second.least.add(least);
  timer->second.most.add(most);
}

void TimerTableReader::take(std::string_view line) {
  if (line.find(kMegatronHead) != std::string_view::npos) {
    in_table_ = true;
    return;
  }
  if (const std::size_t at = line.find(kDeepSpeedHead); at != std::string_view::npos) {
    for (const std::string_view cell : cells_of(line.substr(at + kDeepSpeedHead.size()), '|')) {
      const std::string_view name = cell.substr(0, cell.find(':'));
      if (const auto value = number_behind(cell, ":")) add(name, *value, *value);
    }
    return;
  }
  if (!in_table_) return;
  const auto named = named_time(line);
  in_table_ = named.has_value();
  if (!named) return;
  const auto [name, text] = *named;
  const auto first = number_behind(text, text.starts_with('(') ? "(" : "");
  const auto second = text.starts_with('(') ? number_behind(text, ", ") : first;
  if (first && second) add(name, *first, *second);
}

std::map<std::string, PrintedTimer> TimerTableReader::finish() const {
  std::map<std::string, PrintedTimer> result;
  for (const auto& [name, timer] : timers_) {
    PrintedTimer& kept = result[name] = {.least = timer.least.kept(), .most = timer.most.kept()};
    if (kept.most.size() < 2) continue;
    kept.least.erase(kept.least.begin());
    kept.most.erase(kept.most.begin());
  }
  return result;
}

}}  // namespace plumb::planner

#include "schedules/forms/text_form.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/action_remedy.h"
#include "schedules/forms/schedule_shape.h"
#include "schedules/forms/trimmed.h"
#include "schedules/limits.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::size_t kShownTokenLength = 40;

struct Token {
  std::string_view text;
  std::size_t column = 1;
};

std::vector<Token> split(std::string_view line, std::string_view separators) {
  std::vector<Token> tokens;
  for (std::size_t at = line.find_first_not_of(separators); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
    tokens.push_back({line.substr(at, end - at), at + 1});
    at = line.find_first_not_of(separators, end);
  }
  return tokens;
}

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Parser {
 public:
  explicit Parser(const std::string& file) : file_(file) {}

  Schedule parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_number_;
      parse_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    infer_shape(schedule_);
    if (microbatches_) schedule_.microbatches = *microbatches_;
    if (stages_) schedule_.stages = *stages_;
    return schedule_;
  }

 private:
  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    throw ScheduleError(fmt::format("{}: line {}, column {}: {}", file_, line_number_, column, message));
  }

  void parse_line(std::string_view line) {
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#') return;
    if (const std::size_t colon = content.find(':'); colon != std::string_view::npos) {
      const std::string_view key = trimmed(content.substr(0, colon));
      if (key.starts_with("rank") || key.starts_with("Rank")) {
        const std::size_t begin = line.find(':') + 1;
        parse_numbered_row(trimmed(key.substr(4)), std::string(begin, ' ').append(line.substr(begin)));
      } else {
        parse_header(key, trimmed(content.substr(colon + 1)));
      }
      return;
    }
    schedule_.ranks.push_back(parse_row(line, fmt::format("{}: line {}", file_, line_number_)));
  }

  /// Parses "rank 3: 3F0 ...", which must name the rank whose turn it is.
  void parse_numbered_row(std::string_view number, std::string_view row) {
    const std::optional<int> rank = parse_int(number);
    if (!rank || *rank != static_cast<int>(schedule_.ranks.size())) {
      fail(1, fmt::format("rank \"{}\" stands where rank {} is: list the ranks in order, from 0", number,
                          schedule_.ranks.size()));
    }
    schedule_.ranks.push_back(parse_row(row, fmt::format("{}: line {}", file_, line_number_)));
  }

  void parse_header(std::string_view key, std::string_view value) {
    if (key == "name") {
      schedule_.name = value;
    } else if (key == "microbatches") {
      microbatches_ = parse_int(value);
      if (!microbatches_ || *microbatches_ < 1)
        fail(1, fmt::format("\"{}\" micro-batches cannot be: give 1 or more", value));
    } else if (key == "weights") {
      const std::optional<WeightPolicy> policy = policy_from_name(value);
      if (!policy) {
        fail(1, fmt::format("\"{}\" is no weight policy: give current, stashed, vertical_sync or two_buffered", value));
      }
      schedule_.weights = *policy;
    } else if (key == "stages") {
      stages_.emplace();
      for (const Token& token : split(value, kBlanks)) {
        const std::vector<Token> numbers = split(token.text, "/");
        std::vector<int> parsed;
        for (const Token& number : numbers) {
          if (const auto n = parse_int(number.text)) parsed.push_back(*n);
        }
        const auto in_range = [](int number) { return number >= 0 && number <= kLargestStage; };
        if (numbers.size() != 3 || parsed.size() != 3 || !std::ranges::all_of(parsed, in_range)) {
          fail(1, fmt::format("\"{}\" is no place of a stage: write rank/model part/lane, each 0 to {}, as in 1/1/0",
                              token.text, kLargestStage));
        }
        stages_->push_back({.rank = parsed[0], .model_part = parsed[1], .lane = parsed[2]});
      }
    } else {
      fail(1, fmt::format("\"{}\" is not known here: give name, microbatches, weights or stages, or a row of actions",
                          key));
    }
  }

  const std::string& file_;
  std::size_t line_number_ = 0;
  Schedule schedule_;
  std::optional<int> microbatches_;
  std::optional<std::vector<StagePlace>> stages_;
};

}  // namespace

std::vector<Action> parse_row(std::string_view row, const std::string& place) {
  std::vector<Action> actions;
  if (trimmed(row) == "-") return actions;
  for (std::size_t at = row.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(row.find_first_of(kBlanks, at), row.size());
    const Token token{row.substr(at, end - at), at + 1};
    at = row.find_first_not_of(kBlanks, end);
    const auto fail = [&] {
      throw ScheduleError(
          fmt::format("{}, column {}: \"{}\" {}", place, token.column, token.text.substr(0, kShownTokenLength),
                      action_remedy(token.text.substr(0, kShownTokenLength),
                                    "is not an action: write <stage><OP><micro-batch>, as in 0F3 or 1SEND_F0")));
    };
    const std::size_t ampersand = token.text.find('&');
    std::optional<Action> action = parse_action(token.text.substr(0, ampersand));
    if (!action) fail();
    action->overlaps_next = ampersand != std::string_view::npos;
    actions.push_back(*action);
    if (!action->overlaps_next) continue;
    const std::optional<Action> second = parse_action(token.text.substr(ampersand + 1));
    if (!second) fail();
    actions.push_back(*second);
  }
  return actions;
}

std::string row_text(const std::vector<Action>& actions) {
  std::string text;
  if (actions.empty()) text += '-';
  for (std::size_t i = 0; i < actions.size(); ++i) {
    text += to_text(actions[i]);
    if (i + 1 < actions.size()) text += actions[i].overlaps_next ? '&' : ' ';
  }
  return text;
}

Schedule parse_schedule(std::string_view text, const std::string& file) {
  return Parser(file).parse(text);
}

std::string to_text(const Schedule& schedule) {
  Schedule implied{.ranks = schedule.ranks};
  infer_shape(implied);
  std::string text;
  if (!schedule.name.empty()) text += fmt::format("name: {}\n", schedule.name);
  if (schedule.weights != WeightPolicy::kCurrent) text += fmt::format("weights: {}\n", policy_name(schedule.weights));
  if (schedule.microbatches != implied.microbatches) text += fmt::format("microbatches: {}\n", schedule.microbatches);
  if (schedule.stages != implied.stages) {
    text += "stages:";
    for (const StagePlace& place : schedule.stages)
      text += fmt::format(" {}/{}/{}", place.rank, place.model_part, place.lane);
    text += '\n';
  }
  for (const std::vector<Action>& actions : schedule.ranks) text += row_text(actions) + '\n';
  return text;
}

}}  // namespace plumb::schedules

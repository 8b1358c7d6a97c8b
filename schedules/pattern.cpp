#include "schedules/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace schedules {
namespace {

/// RE2 has a string view of its own, which in later versions is the standard's.
re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_case_sensitive(false);
  options.set_log_errors(false);
  return options;
}

}  // namespace

Pattern::Pattern(std::string_view expression, std::string_view place) {
  const std::string before = place.empty() ? "" : fmt::format("{}: ", place);
  if (expression.size() > kLongestExpression) {
    throw SpecError(fmt::format("{}a regular expression of {} letters is too long: give at most {}", before,
                                expression.size(), kLongestExpression));
  }
  engine_ = std::make_shared<const re2::RE2>(piece(expression), options());
  if (engine_->ok()) return;
  const re2::RE2::ErrorCode error = engine_->error_code();
  const bool large = error == re2::RE2::ErrorPatternTooLarge || error == re2::RE2::ErrorRepeatSize;
  throw SpecError(fmt::format("{}\"{}\" is {}", before, expression,
                              large ? "too large a regular expression: repeat less"
                                    : "no regular expression (RE2's: no look-ahead, no references back): mend it"));
}

bool Pattern::found_in(std::string_view text) const {
  return re2::RE2::PartialMatch(piece(text), *engine_);
}

std::vector<std::string> Pattern::groups_in(std::string_view text) const {
  std::vector<re2::StringPiece> groups(static_cast<std::size_t>(engine_->NumberOfCapturingGroups()) + 1);
  if (!engine_->Match(piece(text), 0, text.size(), re2::RE2::UNANCHORED, groups.data(),
                      static_cast<int>(groups.size())))
    return {};
  std::vector<std::string> result;
  for (const re2::StringPiece& group : groups) result.emplace_back(group.data(), group.size());
  return result;
}

std::string Pattern::removed_from(std::string_view text) const {
  std::string rest(text);
  re2::RE2::GlobalReplace(&rest, *engine_, "");
  return rest;
}

}}  // namespace plumb::schedules

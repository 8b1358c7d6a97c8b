#pragma once
// Expressions of mappings and tables, each compiled once for all rows: to compile one takes longer than to match it.

#include <string>

#include "planner/threads/memo.h"
#include "schedules/pattern.h"

namespace plumb { inline namespace planner {

/// Returns the compiled expression. Throws SpecError as Pattern does.
inline const Pattern& known_pattern(const std::string& expression) {
  static const Memo<std::string, Pattern> patterns;
  return patterns.of(expression, [&] { return Pattern(expression); });
}

}}  // namespace plumb::planner

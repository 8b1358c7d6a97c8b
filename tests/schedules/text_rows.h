#pragma once
// Schedules written as text, a line a rank, in the forms that tests compare.

#include <string>
#include <string_view>
#include <vector>

#include "schedules/forms/text_form.h"

namespace plumb::test {

/// Returns the actions of each rank.
inline std::vector<std::vector<Action>> rows(std::string_view text) {
  return parse_schedule(text).ranks;
}

/// Returns the same schedule as to_text() writes it.
inline std::string text(std::string_view rows) {
  return to_text(parse_schedule(rows));
}

}  // namespace plumb::test

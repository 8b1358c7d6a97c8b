#pragma once

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/rules/validate.h"

namespace plumb::test {

/// Returns the one violation of a schedule that is written as text; fails the case if there are others or none.
inline Violation only_violation(std::string_view text) {
  const std::vector<Violation> found = validate(parse_schedule(text));
  for (const Violation& violation : found) INFO(to_text(violation));
  REQUIRE(found.size() == 1);
  return found.front();
}

}  // namespace plumb::test

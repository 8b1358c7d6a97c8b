#pragma once

#include <string>

#include "planner/budget/reliability_spec.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

/// Returns a preset of tools/specs/reliability.
inline ReliabilitySpec preset_reliability(const std::string& name) {
  return parse_reliability(source_text("tools/specs/reliability/" + name + ".json"), name);
}

}  // namespace plumb::test

#pragma once
// The tables of all targets, as the tool has them.

#include <vector>

#include "planner/exchange/target.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

inline Target target_named(const std::string& name) {
  return parse_target(source_text("tools/specs/targets/" + name + ".json"), name);
}

inline std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const std::string& name : preset_names("targets")) targets.push_back(target_named(name));
  return targets;
}

}  // namespace plumb::test

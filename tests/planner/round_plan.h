#pragma once
// Plans of the small model on the round machine (tests/planner/fixtures.h), for tests of its network.

#include "planner/search/plan.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

/// Returns a plan on nodes of four devices: data groups (dp=4 with tp=1) fill a part of a node, or cross nodes with
/// tp=4.
inline Plan round_plan(const Layout& layout, int devices = 16) {
  return {.model = small_gpt(),
          .cluster = round_cluster(devices),
          .training = {.global_batch = 32, .sequence = 512},
          .layout = layout};
}

/// tp fills a node, so that messages and gradient sums both cross every device's own NIC.
inline const Layout kNodeWide{.data = 2, .tensor = 4, .pipeline = 2, .chunks = 2, .zero = 0, .schedule = "interleaved"};

}  // namespace plumb::test

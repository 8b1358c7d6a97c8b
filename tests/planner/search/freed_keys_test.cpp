#include "planner/search/freed_keys.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "planner/evaluate/evaluation.h"
#include "planner/search/bounds.h"
#include "planner/search/layout_tree.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

constexpr std::array kPinned = {"tp=1", "mbs=8", "zero=0", "recompute=none", "schedule=1f1b"};
using PinSet = std::set<std::string>;

std::string joined(const PinSet& pins) {
  std::string text;
  for (const std::string& pin : pins) text += (text.empty() ? "" : ",") + pin;
  return text;
}

/// True if a layout with those pins fits as it is simulated.
bool one_fits(Pricing& pricing, const PinSet& pins) {
  for (const Layout& layout : enumerate_layouts(pricing, parse_layout_space(joined(pins))).layouts) {
    const Simulation step = evaluate(pricing, layout, {.network = NetworkOptions{}}).simulation;
    if (!memory_shortfall(step.peak_memory_bytes, pricing.cluster().device)) return true;
  }
  return false;
}

/// Every set of so many of the pins.
std::vector<PinSet> sets_of(int count) {
  std::vector<PinSet> sets;
  for (unsigned mask = 0; mask < 1U << kPinned.size(); ++mask) {
    PinSet set;
    for (std::size_t pin = 0; pin < kPinned.size(); ++pin)
      if ((mask >> pin & 1U) != 0) set.insert(kPinned[pin]);
    if (std::ssize(set) == count) sets.push_back(set);
  }
  return sets;
}

}  // namespace

TEST_CASE("the pins to free are the fewest with which a layout fits, and all such") {
  const PinSet all(kPinned.begin(), kPinned.end());
  std::set<std::size_t> sizes;
  for (const int mebibytes : {1900, 1600, 1400, 1200, 1100, 1000}) {
    CAPTURE(mebibytes);
    ClusterSpec cluster = round_cluster(2);
    cluster.device.memory_bytes = std::int64_t{mebibytes} << 20;
    Pricing pricing(small_gpt(), cluster, {.global_batch = 16, .sequence = 512});
    if (one_fits(pricing, all)) continue;
    std::set<PinSet> expected;
    for (int count = 1; count <= std::ssize(kPinned) && expected.empty(); ++count) {
      for (const PinSet& freed : sets_of(count)) {
        PinSet left;
        std::ranges::set_difference(all, freed, std::inserter(left, left.end()));
        if (one_fits(pricing, left)) expected.insert(freed);
      }
    }
    std::set<PinSet> found;
    for (const FreedKeys& freed : fewest_freed_keys(pricing, parse_layout_space(joined(all)))) {
      PinSet keys;
      for (const char* pin : kPinned)
        if (to_text(freed.keys).find(pin) != std::string::npos) keys.insert(pin);
      found.insert(keys);
      const Simulation step = evaluate(pricing, freed.layout, {.network = NetworkOptions{}}).simulation;
      CHECK(!memory_shortfall(step.peak_memory_bytes, cluster.device));
    }
    CHECK(found == expected);
    if (!expected.empty()) sizes.insert(expected.begin()->size());
  }
  CHECK(sizes.size() > 1);  // one pin, and several
}

TEST_CASE("a question without pins, or that nothing helps, has none to free") {
  ClusterSpec cluster = round_cluster(1);
  cluster.device.memory_bytes = std::int64_t{1} << 20;
  Pricing pricing(small_gpt(), cluster, kSmallTraining);
  CHECK(fewest_freed_keys(pricing, {}).empty());
  CHECK(fewest_freed_keys(pricing, parse_layout_space("mbs=8")).empty());
}

}  // namespace plumb::test

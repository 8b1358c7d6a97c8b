#include "planner/observe/layout_changes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/search/search.h"
#include "planner/spec/layout_keys.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {
namespace {

using Keys = std::vector<std::string_view>;

/// The keys that go together along an axis: a degree grows at the replicas' cost.
const std::vector<Keys>& axes() {
  static const std::vector<Keys> all{{"tp", "dp", "sp"},
                                     {"pp", "dp", "v", "schedule", "group"},
                                     {"cp", "dp", "cp_kind"},
                                     {"ep", "etp"},
                                     {"v", "schedule", "group"},
                                     {"zero", "shard"},
                                     {"mbs"},
                                     {"recompute", "recompute_layers"},
                                     {"offload"},
                                     {"sp"},
                                     {"bucket_mib"}};
  return all;
}

bool holds_key(const Keys& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

/// Returns the layouts with every key as it is, but those of the axis.
LayoutSpace along(const Keys& axis, const Layout& layout) {
  LayoutRequest request;
  visit_layout_keys<std::optional>([&](std::string_view key, auto answer, auto question) {
    if (!holds_key(axis, key)) request.*question = layout.*answer;
  });
  if (!holds_key(axis, "pp") && !holds_key(axis, "v") && !layout.split.empty()) request.split = layout.split;
  return request;
}

std::string difference(const Layout& from, const Layout& to) {
  std::vector<std::string> keys;
  visit_layout_keys<>([&](std::string_view key, auto answer) {
    if (from.*answer != to.*answer) keys.push_back(fmt::format("{}={}", key, value_text(to.*answer)));
  });
  return fmt::format("{}", fmt::join(keys, ","));
}

}  // namespace

std::vector<LayoutChange> layout_changes(Pricing& pricing, const Layout& layout, Seconds step) {
  std::vector<LayoutChange> changes;
  for (const Keys& axis : axes()) {
    SearchResult found = search_layouts(pricing, along(axis, layout), {.keep = 1, .advise = false});
    if (found.ranked.empty() || step_time(found.ranked.front().simulation) >= step) continue;
    std::string change = difference(layout, found.ranked.front().layout);
    if (change.empty() || std::ranges::find(changes, change, &LayoutChange::change) != changes.end()) continue;
    changes.push_back({.change = std::move(change), .evaluation = std::move(found.ranked.front())});
  }
  std::ranges::stable_sort(changes, std::less{},
                           [](const LayoutChange& of) { return step_time(of.evaluation.simulation); });
  return changes;
}

}}  // namespace plumb::planner

#include "planner/search/fit_advisor.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "planner/search/nearest_miss.h"
#include "planner/search/stack_conflict.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

struct Change {
  std::string text;
  Layout layout;
};

/// Changes of one key, the least costly first.
std::vector<Change> changes_of(const Layout& layout) {
  std::vector<Change> changes;
  const auto add = [&](std::string text, auto edit) {
    Change change{.text = std::move(text), .layout = layout};
    edit(change.layout);
    changes.push_back(std::move(change));
  };
  if (layout.tensor > 1 && !layout.sequence_parallel) {
    add("sp=1", [](Layout& l) { l.sequence_parallel = true; });
  }
  for (int zero = layout.zero + 1; zero <= 3 && layout.data > 1; ++zero)
    add(fmt::format("zero={}", zero), [zero](Layout& l) { l.zero = zero; });
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    if (recompute <= layout.recompute) continue;
    add(fmt::format("recompute={}", recompute_name(recompute)), [recompute](Layout& l) { l.recompute = recompute; });
  }
  for (std::int64_t size = layout.microbatch - 1; size >= 1; --size) {
    if (layout.microbatch % size == 0) add(fmt::format("mbs={}", size), [size](Layout& l) { l.microbatch = size; });
  }
  if (layout.schedule == "gpipe") add("schedule=1f1b", [](Layout& l) { l.schedule = "1f1b"; });
  if (layout.chunks > 1) {
    add("v=1,schedule=1f1b", [](Layout& l) { l.chunks = 1, l.schedule = "1f1b"; });
  }
  for (int factor = 2; factor <= layout.data; ++factor) {
    if (layout.data % factor != 0) continue;
    const int data = layout.data / factor;
    const int tensor = layout.tensor * factor;
    add(fmt::format("tp={},dp={}", tensor, data), [=](Layout& l) { l.tensor = tensor, l.data = data; });
    const int pipeline = layout.pipeline * factor;
    add(fmt::format("pp={},dp={}", pipeline, data), [=](Layout& l) { l.pipeline = pipeline, l.data = data; });
  }
  return changes;
}

/// True if a key of the change is among those that were changed before.
bool repeats_key(std::string_view before, std::string_view change) {
  const auto keys = layout_words(before);
  return std::ranges::any_of(layout_words(change), [&](const auto& word) {
    return std::ranges::find(keys, word.first, [](const auto& known) { return known.first; }) != keys.end();
  });
}

std::optional<std::string> more_devices(const Pricing& pricing, const LayoutSpace& space) {
  const ClusterSpec& cluster = pricing.cluster();
  if (site_count(cluster) > 1) return std::nullopt;
  constexpr int kLargestFactor = 1024;
  LayoutSpace free = space;
  free.data = {};
  for (int factor = 2; factor <= kLargestFactor; factor *= 2) {
    try {
      Pricing larger(pricing.model(), resize(cluster, cluster.devices * factor), pricing.training(),
                     pricing.assumable());
      const std::optional<NearestMiss> closest = frugal_miss(larger, free);
      if (closest && !closest->shortfall) {
        return fmt::format("{} devices fit it as {}", cluster.devices * factor, to_text(closest->layout));
      }
    } catch (const SpecError&) {
      return std::nullopt;  // no network for so many, or a node that they do not fill
    }
  }
  return std::nullopt;
}

}  // namespace

bool FitAdvisor::fits(const Layout& layout) {
  if (!holds(space_, layout)) return false;
  if (layout_conflict(pricing_.model(), pricing_.training(), pricing_.cluster(), layout)) return false;
  return !closed_by_stack(pricing_, space_, layout) && !held_.shortfall(layout);
}

/// Returns the text of the first of so many changes one behind the other with which the layout fits; nothing if there
/// are none. No key is changed twice.
std::optional<std::string> FitAdvisor::changes_that_fit(const Layout& layout, const std::string& before, int count) {
  for (const Change& change : changes_of(layout)) {
    if (repeats_key(before, change.text)) continue;
    const std::string text = before.empty() ? change.text : before + "," + change.text;
    if (count > 1) {
      if (auto more = changes_that_fit(change.layout, text, count - 1)) return more;
    } else if (fits(change.layout)) {
      return text + " fits";
    }
  }
  return std::nullopt;
}

std::string FitAdvisor::nearest_change(const Layout& layout) {
  constexpr int kMostChanges = 3;
  for (int count = 1; count <= kMostChanges; ++count)
    if (auto changes = changes_that_fit(layout, {}, count)) return *changes;
  if (!other_) other_ = other_layout_or_cluster();
  return *other_;
}

std::string FitAdvisor::other_layout_or_cluster() {
  const std::optional<NearestMiss> closest = frugal_miss(pricing_, space_);
  if (closest && !closest->shortfall) return to_text(closest->layout) + " fits";
  std::string remedy;
  if (closest && site_count(pricing_.cluster()) == 1) {
    const double needed =
        static_cast<double>(pricing_.cluster().device.memory_bytes + closest->shortfall->missing_bytes) / kGibibyte;
    remedy =
        fmt::format("device.memory_gib={:.1f} would fit {}", std::ceil(needed * 10) / 10, to_text(closest->layout));
  }
  if (const auto devices = more_devices(pricing_, space_)) remedy += (remedy.empty() ? "" : ", or ") + *devices;
  return remedy.empty() ? "no number of devices fits it" : remedy;
}

}}  // namespace plumb::planner

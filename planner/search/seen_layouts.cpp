#include "planner/search/seen_layouts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "planner/search/empty_space.h"
#include "planner/search/fit_advisor.h"
#include "planner/search/nearest_miss.h"
#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns how many of the keys that `keys` answers the space restricts.
int restricted_keys(const LayoutSpace& space, const LayoutRequest& keys) {
  int count = keys.split && !space.split.is_open() ? 1 : 0;
  visit_layout_keys<Values, std::optional>([&](std::string_view, auto, auto values, auto question) {
    if (keys.*question && !(space.*values).is_open()) ++count;
  });
  return count;
}

/// Says by how much layouts are too large of which none was priced.
std::string why_none_fits(Candidates& candidates) {
  LayoutSpace usual = candidates.space();  // the usual ones say enough
  usual.wide = false;
  const std::optional<NearestMiss> closest = nearest_miss(candidates.pricing(), usual);
  if (!closest || !closest->shortfall) return "no layout fits";
  return fmt::format("no layout fits; the closest is {}: {}; {}", to_text(closest->layout),
                     to_text(*closest->shortfall),
                     FitAdvisor(candidates.pricing(), usual).nearest_change(closest->layout));
}

}  // namespace

SearchCounts counts_of(const Candidates& candidates) {
  const SeenLayouts& seen = candidates.seen();
  std::int64_t simulated = 0, found_too_large = 0;
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    simulated += candidates[index].known == Known::kShared ? 1 : 0;
    found_too_large += candidates[index].known == Known::kOut ? 1 : 0;
  }
  SearchCounts counts;
  counts.families = std::ssize(candidates.families());
  counts.opened =
      std::ranges::count_if(candidates.families(), [](const Branch& family) { return family.below.has_value(); });
  counts.evaluations = candidates.evaluations();
  counts.cores_too_large = seen.cores_too_large;
  counts.priced = seen.all;
  counts.conflicts = std::ssize(candidates.conflicts());
  counts.too_large = seen.too_large + found_too_large;
  counts.simulated = simulated;
  counts.outrun = counts.priced - counts.too_large - counts.simulated;
  return counts;
}

std::vector<Rejection> losers_of(Candidates& candidates, std::span<const std::size_t> rows) {
  std::vector<Rejection> losers;
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    if (std::ranges::find(rows, index) != rows.end()) continue;
    const Candidate& candidate = candidates[index];
    std::string reason;
    if (candidate.known == Known::kOut) {
      reason = candidates.why_out(index);
    } else {
      reason = fmt::format("it takes {}{:.4g} s", candidate.known == Known::kShared ? "" : "at least ",
                           to_seconds(candidate.time).count());
    }
    losers.push_back({request_of(candidates.layout(index)), std::move(reason)});
  }
  return losers;
}

std::vector<LearnedLayout> learned_of(const Candidates& candidates) {
  std::vector<LearnedLayout> learned;
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    const Candidate& candidate = candidates[index];
    const bool fits = candidate.known != Known::kOut;
    if (candidate.peak_bytes == 0) continue;
    learned.push_back({.layout = candidate.layout,
                       .time = candidate.time,
                       .peak_bytes = candidate.peak_bytes,
                       .on_shared_links = candidate.known == Known::kShared,
                       .fits = fits});
  }
  return learned;
}

std::string why_none_is_feasible(Candidates& candidates) {
  if (candidates.none_exists()) {
    if (candidates.conflicts().empty()) return why_empty(candidates.pricing(), candidates.space());
    const Rejection& conflict = *std::ranges::max_element(candidates.conflicts(), {}, [&](const Rejection& one) {
      return restricted_keys(candidates.space(), one.layout);
    });
    return fmt::format("no layout can exist; {}: {}", to_text(conflict.layout), conflict.reason);
  }
  if (const auto closest = candidates.nearest_miss())
    return fmt::format("no layout fits; the closest is {}: {}", to_text(candidates.layout(*closest)),
                       candidates.why_out(*closest));
  if (candidates.size() > 0)
    return fmt::format("no layout fits; the first is {}: {}", to_text(candidates.layout(0)), candidates.why_out(0));
  if (!candidates.order()) return why_none_fits(candidates);
  const std::optional<Schedule>& order = candidates.order();
  return fmt::format(
      "schedule {} has {} micro-batches, which no layout that can exist makes of a batch of {}: give a multiple of "
      "{} as --global-batch, with dp x mbs = --global-batch / {}",
      order->name, order->microbatches, candidates.pricing().training().global_batch, order->microbatches,
      order->microbatches);
}

}}  // namespace plumb::planner

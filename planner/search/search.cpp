#include "planner/search/search.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "planner/search/other_values.h"
#include "planner/search/ranking.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the value of the last row that counts with those that are close to it; infinity where fewer rows than are kept
/// were found.
double highest_value(const SearchResult& found, const SearchOptions& options) {
  if (std::ssize(found.values) < options.keep) return std::numeric_limits<double>::infinity();
  return (1 + kNearlyTheSame) * found.values.back();
}

/// Returns the better answer of two searches that were stopped, of which the second one's space holds the first one's.
SearchResult better_of(SearchResult usual, SearchResult wide) {
  const bool usual_is_better =
      !usual.values.empty() && (wide.values.empty() || usual.values.front() < wide.values.front());
  if (!usual_is_better) return wide;
  usual.stopped_at = wide.stopped_at;
  usual.counts = wide.counts;
  return usual;
}

/// Searches a wide space. No layout that is worse than all rows of the usual space's is a row, so that these are searched
/// first and the others are not kept.
SearchResult search_wide(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                         const std::optional<Schedule>& order) {
  LayoutSpace usual = space;
  usual.wide = false;
  SearchOptions left = options;
  left.advise = false;
  SearchResult first = ranked_layouts(pricing, usual, left, order, {.complete = false});
  left.advise = options.advise;
  if (options.most_evaluations > 0)
    left.most_evaluations = std::max<std::int64_t>(options.most_evaluations - first.counts.evaluations, 1);
  SearchResult wide =
      ranked_layouts(pricing, space, left, order,
                     {.complete = false, .most = highest_value(first, options), .has_answer = !first.ranked.empty()});
  wide.counts.evaluations += first.counts.evaluations;
  wide.counts.evaluations_until_stop += first.counts.evaluations;
  return wide.stopped_at ? better_of(std::move(first), std::move(wide)) : std::move(wide);
}

/// Returns the rows of a space, or why there are none. Cores that cannot fit are not opened, unless none fits.
SearchResult search_rows(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                         const std::optional<Schedule>& order) {
  const bool bounded = space.wide && !options.memory_front && !options.explain;
  SearchResult result = bounded ? search_wide(pricing, space, options, order)
                                : ranked_layouts(pricing, space, options, order, {.complete = options.explain});
  const bool is_answer = !result.ranked.empty() || result.limited || result.stopped_at || !options.advise;
  if (is_answer || result.counts.cores_too_large == 0) return result;
  LayoutSpace usual = space;  // of layouts that do not fit the usual ones say enough
  usual.wide = false;
  return ranked_layouts(pricing, usual, options, order, {});
}

SearchResult search_space(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                          const std::optional<Schedule>& order) {
  SearchResult result = search_rows(pricing, space, options, order);
  if (!options.by_key || result.ranked.empty()) return result;
  SearchOptions of_value = {.objective = options.objective, .threads = options.threads, .keep = 1, .advise = false};
  result.other_values = other_values(pricing, space, result.ranked.front().layout, [&](const LayoutSpace& pinned) {
    SearchResult best = search_rows(pricing, pinned, of_value, order);
    if (!best.ranked.empty() || best.missing_bytes > 0) return best;
    return ranked_layouts(pricing, pinned, of_value, order, {});
  });
  return result;
}

}  // namespace

SearchCounts& SearchCounts::operator+=(const SearchCounts& other) {
  for (const auto member :
       {&SearchCounts::families, &SearchCounts::opened, &SearchCounts::cores_too_large, &SearchCounts::conflicts,
        &SearchCounts::evaluations, &SearchCounts::evaluations_until_stop, &SearchCounts::priced,
        &SearchCounts::too_large, &SearchCounts::simulated, &SearchCounts::outrun})
    this->*member += other.*member;
  return *this;
}

SearchResult search_layouts(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                            const std::optional<Schedule>& order) {
  SearchResult result = search_space(pricing, space, options, order);
  const bool may_fit = !result.ranked.empty() || result.limited;
  const bool too_large = result.counts.too_large + result.counts.cores_too_large > 0;
  if (may_fit || space.wide || !space.offload.is_open() || !pricing.cluster().host || !too_large) return result;
  for (const Offload offload : {Offload{.optimizer = true}, Offload{.optimizer = true, .activations = true}}) {
    if (!result.ranked.empty()) break;
    LayoutSpace offloading = space;
    offloading.offload = {.named = {offload}};
    SearchResult other = search_space(pricing, offloading, options, order);
    if (!other.ranked.empty()) result = std::move(other);
  }
  return result;
}

}}  // namespace plumb::planner

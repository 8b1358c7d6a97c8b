#include "planner/search/search.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "planner/search/named_meshes.h"
#include "planner/search/nearest_miss.h"
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

/// Returns the answer of two searches that were stopped, with the best rows of both, a family once. The second one's
/// space holds the first one's.
SearchResult joined_rows(SearchResult usual, SearchResult wide, int keep) {
  std::vector<std::pair<SearchResult*, std::size_t>> rows;
  for (SearchResult* found : {&wide, &usual})
    for (std::size_t row = 0; row < found->values.size(); ++row) rows.emplace_back(found, row);
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first->values[row.second]; });
  SearchResult joined;
  for (const auto& [found, row] : rows) {
    const LayoutRequest family = family_of(found->ranked[row].layout);
    const bool is_known =
        std::ranges::any_of(joined.ranked, [&](const Evaluation& one) { return family_of(one.layout) == family; });
    if (is_known || std::ssize(joined.ranked) == keep) continue;
    joined.values.push_back(found->values[row]);
    joined.ranked.push_back(std::move(found->ranked[row]));
    joined.variants.push_back(std::move(found->variants[row]));
  }
  wide.ranked = std::move(joined.ranked);
  wide.values = std::move(joined.values);
  wide.variants = std::move(joined.variants);
  return wide;
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
  return wide.stopped_at ? joined_rows(std::move(first), std::move(wide), options.keep) : std::move(wide);
}

/// Returns the rows of a space, or why there are none. Layouts that cannot fit are not priced, unless all are listed.
SearchResult search_rows(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                         const std::optional<Schedule>& order) {
  if (space.wide && !options.memory_front && !options.explain) return search_wide(pricing, space, options, order);
  return ranked_layouts(pricing, space, options, order, {.complete = options.explain});
}

SearchResult search_space(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                          const std::optional<Schedule>& order) {
  SearchResult result = search_rows(pricing, space, options, order);
  if (!options.by_key || result.ranked.empty()) return result;
  SearchOptions of_value = {.objective = options.objective, .threads = options.threads, .keep = 1, .advise = false};
  result.other_values = other_values(pricing, space, result.ranked.front().layout, [&](const LayoutSpace& pinned) {
    SearchResult best = search_rows(pricing, pinned, of_value, order);
    if (!best.ranked.empty() || best.missing_bytes > 0 || order) return best;
    const std::optional<NearestMiss> miss = nearest_miss(pricing, pinned);
    if (miss && miss->shortfall) best.missing_bytes = miss->shortfall->missing_bytes;
    return best;
  });
  return result;
}

/// Returns the space with all in the hosts that may wait there; nothing where the framework has no such, or it is open.
std::optional<LayoutSpace> offloading_all(const Pricing& pricing, LayoutSpace space) {
  constexpr Offload kAll{.optimizer = true, .activations = true};
  const TrainingSpec& training = pricing.training();
  const bool may_wait = training.stack
                            ? std::ranges::find(training.stack->can.offload, kAll) != training.stack->can.offload.end()
                            : is_of_own_executor(training);
  if (space.wide || !space.offload.is_open() || !pricing.cluster().host || !may_wait) return std::nullopt;
  space.offload = {.named = {kAll}};
  return space;
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
  if (names_meshes(space)) return named_meshes(pricing, space, options, order);
  SearchResult result = search_space(pricing, space, options, order);
  const bool may_fit = !result.ranked.empty() || result.limited;
  const bool too_large = result.counts.too_large + result.counts.cores_too_large > 0;
  const std::optional<LayoutSpace> offloading = offloading_all(pricing, space);
  if (may_fit || !too_large || !offloading) return result;
  SearchResult other = search_space(pricing, *offloading, options, order);
  return other.ranked.empty() ? result : other;
}

}}  // namespace plumb::planner

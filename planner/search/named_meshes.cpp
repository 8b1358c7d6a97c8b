#include "planner/search/named_meshes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "planner/search/evaluate_plan.h"
#include "planner/spec/layout_keys.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// Throws SpecError for a key that a search would choose.
void require_one_value(const LayoutSpace& space) {
  visit_layout_keys<Values>([&](std::string_view key, auto, auto values) {
    const auto& of_key = space.*values;
    if (of_key.is_open() || of_key.named.size() == 1 || key == "meshes") return;
    throw SpecError(fmt::format("layout {}: with meshes nothing is searched: give it one value", key));
  });
}

Layout layout_on(const LayoutSpace& space, const std::vector<RankMesh>& meshes) {
  LayoutRequest request = fixed_keys(space);
  request.meshes = meshes;
  if (!request.microbatch) {
    std::int64_t shared = 1;
    for (const RankMesh& mesh : meshes)
      shared = std::lcm(shared, std::int64_t{mesh.data / std::gcd(mesh.data, request.data.value_or(1))});
    request.microbatch = shared;
  }
  return layout_of(request);
}

/// Returns the space of the degrees that meshes stand for which are all alike.
LayoutSpace plain_space(LayoutSpace space, const Layout& layout) {
  space.meshes = {};
  space.data.named = {layout.data};
  space.tensor.named = {layout.tensor};
  space.pipeline.named = {layout.pipeline};
  if (!space.microbatch.is_open()) space.microbatch.named = {layout.microbatch};
  return space;
}

void add_rows(SearchResult& result, SearchResult found) {
  for (std::size_t row = 0; row < found.ranked.size(); ++row) {
    result.ranked.push_back(std::move(found.ranked[row]));
    result.values.push_back(found.values[row]);
    result.variants.push_back(std::move(found.variants[row]));
  }
  if (result.infeasible.empty()) result.infeasible = std::move(found.infeasible);
  result.missing_bytes = std::max(result.missing_bytes, found.missing_bytes);
  result.counts += found.counts;
}

SearchResult evaluated(Pricing& pricing, const Layout& layout, const SearchOptions& options,
                       const std::optional<Schedule>& order) {
  const Plan plan{.model = pricing.model(),
                  .cluster = pricing.cluster(),
                  .training = pricing.training_in(layout),
                  .layout = layout,
                  .order = order};
  Evaluation evaluation =
      evaluate(pricing, plan, std::nullopt, {.simulation = {.record_timeline = false}, .network = NetworkOptions{}});
  SearchResult result;
  result.infeasible = evaluation.infeasible;
  result.counts.evaluations = evaluation.exists ? 1 : 0;
  result.counts.priced = result.counts.evaluations;
  result.counts.conflicts = evaluation.exists ? 0 : 1;
  if (!evaluation.infeasible.empty()) return result;
  result.values.push_back(options.objective.value(evaluation));
  result.ranked.push_back(std::move(evaluation));
  result.variants.emplace_back();
  return result;
}

SearchResult sorted(SearchResult result, int keep) {
  std::vector<std::size_t> rows(result.ranked.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return result.values[row]; });
  if (std::ssize(rows) > keep) rows.resize(static_cast<std::size_t>(keep));
  SearchResult kept;
  for (const std::size_t row : rows) {
    kept.ranked.push_back(std::move(result.ranked[row]));
    kept.values.push_back(result.values[row]);
    kept.variants.push_back(std::move(result.variants[row]));
  }
  if (kept.ranked.empty()) kept.infeasible = std::move(result.infeasible);
  kept.missing_bytes = result.missing_bytes;
  kept.counts = result.counts;
  return kept;
}

}  // namespace

bool names_meshes(const LayoutSpace& space) {
  return std::ranges::any_of(space.meshes.named, [](const std::vector<RankMesh>& meshes) { return !meshes.empty(); });
}

SearchResult named_meshes(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                          const std::optional<Schedule>& order) {
  require_one_value(space);
  SearchResult result;
  for (const std::vector<RankMesh>& meshes : space.meshes.named) {
    const Layout layout = layout_on(space, meshes);
    add_rows(result, layout.meshes.empty() ? search_layouts(pricing, plain_space(space, layout), options, order)
                                           : evaluated(pricing, layout, options, order));
  }
  return sorted(std::move(result), options.keep);
}

}}  // namespace plumb::planner

#include "planner/search/search.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "planner/evaluate/host_offload.h"
#include "planner/search/bounds.h"
#include "planner/search/fit_advisor.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace planner {
namespace {

/// The schedule of a layout with few micro-batches: its stages, where they lie, and which operations it has. One is
/// enough unless micro-batches enter at both ends: such schedules show all of their operations with two a rank.
Schedule skeleton_of(const Layout& layout) {
  const CatalogueEntry& entry = catalogue_entry(layout.schedule);
  return make_schedule(layout.schedule, {.ranks = layout.pipeline,
                                         .microbatches = entry.both_ends ? 2 * layout.pipeline : 1,
                                         .chunks = layout.chunks,
                                         .group = layout.group});
}

struct BoundedLayout {
  SimTime bound{0};
  std::size_t index = 0;  ///< in the enumeration
};

std::vector<BoundedLayout> by_bound(Pricing& pricing, const std::vector<Layout>& layouts) {
  std::vector<BoundedLayout> bounded;
  Schedule skeleton;
  StageOrder order;
  BoundOrder bound;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const Layout& layout = layouts[i];
    const bool same = i > 0 && std::tie(layout.schedule, layout.pipeline, layout.chunks, layout.group) ==
                                   std::tie(layouts[i - 1].schedule, layouts[i - 1].pipeline, layouts[i - 1].chunks,
                                            layouts[i - 1].group);
    if (!same) {
      skeleton = skeleton_of(layout);
      order = stage_order(skeleton);
      bound = bound_order(skeleton);
    }
    const PricedLayout priced = price_layout(pricing, layout, skeleton, order);
    bounded.push_back({step_time_lower_bound({priced.kinds, priced.kind_of_stage}, bound,
                                             microbatches_of(pricing.training(), layout)),
                       i});
  }
  std::ranges::stable_sort(bounded, {}, &BoundedLayout::bound);
  return bounded;
}

struct KeptLayout {
  std::size_t index = 0;  ///< in the enumeration
  Evaluation evaluation;
};

SimTime makespan_of(const KeptLayout& kept) {
  return kept.evaluation.simulation.makespan;
}

void insert_ranked(std::vector<KeptLayout>& kept, KeptLayout candidate, int limit) {
  const auto key = [](const KeptLayout& k) { return std::tuple(makespan_of(k), k.index); };
  const auto place = std::ranges::upper_bound(kept, key(candidate), {}, key);
  kept.insert(place, std::move(candidate));
  if (static_cast<int>(kept.size()) > limit) kept.pop_back();
}

std::string infeasible_sentence(FitAdvisor& advisor, const Enumeration& found,
                                const std::optional<std::pair<Layout, MemoryShortfall>>& closest) {
  if (found.layouts.empty()) {
    const Rejection& first = found.conflicts.front();
    return fmt::format("no layout can exist; {}: {}", to_text(first.layout), first.reason);
  }
  return fmt::format("no layout fits; the closest is {}: {}; {}", to_text(closest->first), to_text(closest->second),
                     advisor.nearest_change(closest->first));
}

/// Returns why the hosts cannot hold the offloaded state; nothing if they can, or nothing is offloaded.
std::optional<std::string> host_conflict(const Pricing& pricing, const Evaluation& evaluation) {
  const Layout& layout = evaluation.layout;
  if (layout.offload == Offload{}) return std::nullopt;
  const Schedule order = order_of(pricing.training(), layout);
  return host_shortfall(
      pricing.cluster(), layout,
      host_bytes_by_rank(evaluation.costs, host_optimizer_bytes_by_stage(evaluation.priced), layout, order));
}

SearchResult search_as_asked(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options) {
  const DeviceSpec& device = pricing.cluster().device;
  Enumeration found = enumerate_layouts(pricing.model(), pricing.training(), pricing.cluster().devices, request);
  FitAdvisor advisor(pricing, request);
  SearchResult result;
  result.counts.enumerated = static_cast<std::int64_t>(found.layouts.size());
  result.counts.conflicts = static_cast<std::int64_t>(found.conflicts.size());

  std::vector<KeptLayout> kept;
  std::optional<std::pair<Layout, MemoryShortfall>> closest;
  std::vector<Rejection> losers;
  const auto lose = [&](const Layout& layout, std::string reason) {
    if (options.explain) losers.push_back({request_of(layout), std::move(reason)});
  };
  const auto too_large = [&](const Layout& layout, const MemoryShortfall& shortfall) {
    ++result.counts.too_large;
    if (!closest || shortfall.missing_bytes < closest->second.missing_bytes) closest = {layout, shortfall};
    if (options.explain) {
      lose(layout, fmt::format("{}: {}", to_text(shortfall), advisor.nearest_change(layout)));
    }
  };

  for (const BoundedLayout& bounded : by_bound(pricing, found.layouts)) {
    const Layout& layout = found.layouts[bounded.index];
    if (static_cast<int>(kept.size()) == options.keep && bounded.bound >= makespan_of(kept.back())) {
      ++result.counts.outrun;
      lose(layout, fmt::format("it takes at least {:.4g} s, and the best takes {:.4g} s",
                               to_seconds(bounded.bound).count(), to_seconds(makespan_of(kept.front())).count()));
      continue;
    }
    PricedLayout priced = price_layout(pricing, layout, short_order_of(pricing.training(), layout));
    if (const auto shortfall = advisor.shortfall_of(layout, priced)) {
      too_large(layout, *shortfall);
      continue;
    }
    Evaluation evaluation = evaluate_sums(pricing, layout, std::move(priced));
    ++result.counts.simulated;
    if (const auto shortfall =
            memory_shortfall(evaluation.simulation.peak_memory_bytes, device, pricing.memory_headroom(layout))) {
      too_large(layout, *shortfall);
      continue;
    }
    if (auto reason = host_conflict(pricing, evaluation)) {
      ++result.counts.too_large;
      lose(layout, std::move(*reason));
      continue;
    }
    lose(layout, fmt::format("it takes {:.4g} s", to_seconds(evaluation.simulation.makespan).count()));
    insert_ranked(kept, {.index = bounded.index, .evaluation = std::move(evaluation)}, options.keep);
  }

  for (KeptLayout& candidate : kept) {
    std::erase_if(losers,
                  [&](const Rejection& loser) { return loser.layout == request_of(candidate.evaluation.layout); });
    result.ranked.push_back(std::move(candidate.evaluation));
  }
  if (result.ranked.empty()) {
    const bool devices_suffice = !found.layouts.empty() && !closest;
    result.infeasible = devices_suffice ? "no layout fits: the hosts cannot hold what is offloaded; use more nodes"
                                        : infeasible_sentence(advisor, found, closest);
  }
  result.rejections = std::move(found.conflicts);
  std::ranges::move(losers, std::back_inserter(result.rejections));
  return result;
}

}  // namespace

SearchResult search_layouts(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options) {
  SearchResult result = search_as_asked(pricing, request, options);
  if (request.offload || !pricing.cluster().host || result.counts.too_large == 0) return result;
  for (const Offload offload : {Offload{.optimizer = true}, Offload{.optimizer = true, .activations = true}}) {
    if (!result.ranked.empty()) break;
    LayoutRequest offloading = request;
    offloading.offload = offload;
    SearchResult other = search_as_asked(pricing, offloading, options);
    if (!other.ranked.empty()) result = std::move(other);
  }
  return result;
}

}}  // namespace plumb::planner

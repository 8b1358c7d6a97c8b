#include "planner/evaluate/tied_reduction.h"

#include <variant>

#include "planner/price/collective/collective_price.h"

namespace plumb { inline namespace planner {

std::vector<Segment> tied_reduction(const Pricing& pricing, const Layout& layout, int first_rank, int last_rank) {
  const ModelSpec& model = pricing.model();
  if (!model.tied_embeddings || first_rank == last_rank) return {};
  const std::int64_t rows = share(std::get<HeadLayer>(pricing.layers().back()).vocab, layout.tensor);
  const std::int64_t bytes = rows * model.hidden * bytes_per_element(pricing.training().gradient_precision);
  const CollectivePrices over_link{.node = pricing.hop(layout, first_rank, last_rank)};
  const Seconds time =
      collective_time(over_link, {.ranks = 2, .nodes = 1, .ranks_per_node = 2}, CollectiveKind::kAllReduce, bytes);
  return {{.kind = Segment::Kind::kCollective,
           .seconds = time,
           .group = Group::kPipeline,
           .collective = CollectiveKind::kAllReduce,
           .bytes = bytes}};
}

}}  // namespace plumb::planner

#include "traces/compare/matching.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace traces {
namespace {

std::tuple<Op, int, int, int> key_of(const Span& span) {
  return {span.action.op, span.action.stage, span.action.microbatch, span.action.part};
}

/// Returns the spans sorted by action; those of equal actions keep their list order.
std::vector<std::int32_t> by_action(const RankTimeline& rank) {
  std::vector<std::int32_t> order(rank.spans.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t i) { return key_of(rank.spans[i]); });
  return order;
}

void require_not_compute(const Span& span, std::size_t rank, std::string_view where) {
  if (!is_compute(span.action.op)) return;
  throw InputError(fmt::format("rank {}: only the {} timeline runs {}; compare timelines of the same schedule", rank,
                               where, to_text(span.action)));
}

}  // namespace

std::vector<std::vector<std::int32_t>> match_spans(const Timeline& a, const Timeline& b) {
  if (a.ranks.size() != b.ranks.size() || a.stages != b.stages) {
    throw InputError(
        fmt::format("one timeline has {} stages on {} ranks, the other {} on {}, or places them differently; "
                    "compare timelines of the same schedule",
                    a.stages.size(), a.ranks.size(), b.stages.size(), b.ranks.size()));
  }
  std::vector<std::vector<std::int32_t>> matches;
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    const std::vector<Span>& ours = a.ranks[r].spans;
    const std::vector<Span>& theirs = b.ranks[r].spans;
    std::vector<std::int32_t>& match = matches.emplace_back(ours.size(), -1);
    const std::vector<std::int32_t> order = by_action(a.ranks[r]);
    const std::vector<std::int32_t> their_order = by_action(b.ranks[r]);
    auto other = their_order.begin();
    for (const std::int32_t i : order) {
      for (; other != their_order.end() && key_of(theirs[*other]) < key_of(ours[i]); ++other) {
        require_not_compute(theirs[*other], r, "second");
      }
      if (other != their_order.end() && key_of(theirs[*other]) == key_of(ours[i])) {
        match[i] = *other++;
      } else {
        require_not_compute(ours[i], r, "first");
      }
    }
    for (; other != their_order.end(); ++other) require_not_compute(theirs[*other], r, "second");
  }
  return matches;
}

}}  // namespace plumb::traces

#include "executor/layers/host/expert_routes.h"

#include <algorithm>

namespace plumb { inline namespace executor {
namespace {

/// Returns true if a token of the sequence is an own one.
bool is_own(std::int64_t token, const ContextTokens& own) {
  const auto inside = [token](const TokenRange& run) { return token >= run.first && token < run.first + run.count; };
  return inside(own.first) || inside(own.second);
}

/// Calls visit(index of the own pick, expert, whether it becomes a row of the expert) for each own pick, in order.
template <class Visit>
void for_each_own_pick(std::span<const std::int32_t> picks, const ContextTokens& own, const TokenRange& routed,
                       const RouteSize& size, Visit visit) {
  const std::int64_t first = routed.first * size.picks, end = first + routed.count * size.picks;
  std::vector<std::int64_t> taken(static_cast<std::size_t>(size.experts));
  std::int64_t next = 0;
  for (std::int64_t sequence = 0; sequence < size.sequences; ++sequence) {
    std::ranges::fill(taken, 0);
    for (std::int64_t token = 0; token < size.sequence; ++token)
      for (std::int64_t j = 0; j < size.picks; ++j) {
        const auto pick = static_cast<std::size_t>((sequence * size.sequence + token) * size.picks + j);
        if (picks[pick] < 0) continue;
        const bool takes = taken[static_cast<std::size_t>(picks[pick])]++ < size.capacity;
        if (!is_own(token, own)) continue;
        const std::int64_t of_own = next++;
        visit(static_cast<std::size_t>(of_own), static_cast<std::size_t>(picks[pick]),
              takes && first <= of_own && of_own < end);
      }
  }
}

}  // namespace

void place_picks(std::span<std::int32_t> places, std::span<std::int32_t> rows, std::span<const std::int32_t> picks,
                 const ContextTokens& own, const TokenRange& routed, const RouteSize& size) {
  std::ranges::fill(rows, 0);
  for_each_own_pick(picks, own, routed, size,
                    [&](std::size_t, std::size_t expert, bool takes) { rows[expert] += takes; });
  std::vector<std::int32_t> next(rows.size());
  for (std::size_t expert = 1; expert < rows.size(); ++expert) next[expert] = next[expert - 1] + rows[expert - 1];
  for_each_own_pick(picks, own, routed, size, [&](std::size_t pick, std::size_t expert, bool takes) {
    places[pick] = takes ? next[expert]++ : -1;
  });
}

void count_loads(std::span<std::int32_t> loads, std::span<const std::int32_t> picks, const RouteSize& size) {
  std::ranges::fill(loads, 0);
  const auto of_sequence = static_cast<std::size_t>(std::max<std::int64_t>(1, size.sequence * size.picks));
  for (std::size_t pick = 0; pick < picks.size(); ++pick)
    if (picks[pick] >= 0)
      ++loads[pick / of_sequence * static_cast<std::size_t>(size.experts) + static_cast<std::size_t>(picks[pick])];
}

void spread_picks(std::span<std::int32_t> whole, std::span<const std::int32_t> own_picks, const ContextTokens& own,
                  const RouteSize& size) {
  auto from = own_picks.begin();
  for (std::int64_t sequence = 0; sequence < size.sequences; ++sequence)
    for (const TokenRange& run : {own.first, own.second}) {
      const std::int64_t count = run.count * size.picks;
      std::copy_n(from, count, whole.begin() + (sequence * size.sequence + run.first) * size.picks);
      from += count;
    }
}

}}  // namespace plumb::executor

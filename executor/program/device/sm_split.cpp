#include "executor/program/device/sm_split.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace executor {

int smallest_sm_group(int major) {
  return major >= 9 ? 8 : 4;
}

SmSplit split_multiprocessors(int ranks, const std::vector<int>& shares, int groups) {
  const bool is_even = shares.empty();
  if (!is_even && (static_cast<int>(shares.size()) != ranks || std::ranges::min(shares) < 1))
    throw SpecError(
        fmt::format("{} shares of the SMs for {} ranks: give one above 0 for each rank", shares.size(), ranks));
  if (groups < ranks) return {.refused = fmt::format("{} ranks and {} groups of SMs", ranks, groups)};
  SmSplit split{.groups = std::vector<int>(static_cast<std::size_t>(ranks), 1)};
  for (int left = groups - ranks; left > 0; --left) {
    std::size_t neediest = 0;
    for (std::size_t rank = 1; rank < split.groups.size(); ++rank) {
      // The rank whose share / (groups + 1) is larger is needier; the fractions are compared crosswise.
      const auto claim = [&](std::size_t of, std::size_t against) {
        return std::int64_t{is_even ? 1 : shares[of]} * (split.groups[against] + 1);
      };
      if (claim(rank, neediest) > claim(neediest, rank)) neediest = rank;
    }
    // An even split stays even, since the remaining groups would make one rank faster than the others.
    if (is_even && left < ranks && neediest == 0) break;
    ++split.groups[neediest];
  }
  return split;
}

}}  // namespace plumb::executor

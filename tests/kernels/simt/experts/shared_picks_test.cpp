#include "kernels/simt/experts/shared_picks.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/kernels/simt/stored.h"

namespace plumb::test {

TEST_CASE("picks of all members stand in whole sequences, and own ones are kept where their experts take them") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  constexpr std::int64_t kMembers = 3, kSequences = 2, kOwn = 6, kPicks = 2, kWhole = kMembers * kOwn;
  for (const bool is_zigzag : {false, true}) {
    std::vector<std::int32_t> whole(kSequences * kWhole * kPicks), places(whole.size()), gathered;
    for (std::int32_t& pick : whole) pick = static_cast<std::int32_t>(random() % 5);
    for (std::int32_t& place : places) place = static_cast<std::int32_t>(random() % 3) - 1;
    const auto size_of = [&](std::int64_t member) {
      return SharedPicks{.own = {.sequences = kSequences, .sequence = kOwn, .experts = 5, .picks = kPicks},
                         .members = kMembers,
                         .member = member,
                         .is_zigzag = is_zigzag};
    };
    std::vector<std::size_t> from;  // [element of gathered] its place in whole sequences
    for (std::int64_t member = 0; member < kMembers; ++member)
      for (std::int64_t sequence = 0; sequence < kSequences; ++sequence)
        for (std::int64_t token = 0; token < kWhole; ++token) {
          const std::int64_t run = is_zigzag ? token / (kOwn / 2) : token / kOwn;
          if ((is_zigzag ? std::min(run, 2 * kMembers - 1 - run) : run) != member) continue;
          for (std::int64_t j = 0; j < kPicks; ++j)
            from.push_back(static_cast<std::size_t>((sequence * kWhole + token) * kPicks + j));
        }
    gathered.reserve(from.size());
    for (const std::size_t place : from) gathered.push_back(whole[place]);
    std::vector<std::int32_t> spread(whole.size(), -7);
    run_on_host(simt::SpreadPicks{spread.data(), gathered.data(), size_of(0)}, kBlocks, kLanes);
    CHECK(spread == whole);
    const std::size_t each = gathered.size() / kMembers;
    for (std::int64_t member = 0; member < kMembers; ++member) {
      const std::size_t first = static_cast<std::size_t>(member) * each;
      const std::int32_t* own = gathered.data() + first;
      std::vector<std::int32_t> kept(each, -7), own_places(each, -7);
      run_on_host(simt::KeepOwnPicks{kept.data(), own_places.data(), own, places.data(), size_of(member)}, kBlocks,
                  kLanes);
      for (std::size_t i = 0; i < each; ++i) {
        CHECK(kept[i] == (places[from[first + i]] < 0 ? -1 : own[i]));
        CHECK(own_places[i] == -1);
      }
    }
  }
}

}  // namespace plumb::test

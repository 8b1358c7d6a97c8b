#pragma once
// Picks of a router where the ranks of a context group share the tokens of every sequence. An expert takes the first
// picks of the whole sequence, wherever their tokens are, and a rank numbers the rows of its own picks
// (executor/layers/host/expert_routes.h). Symbols are those of expert_routes.h, and S own tokens of each sequence, n
// ranks.

#include "kernels/simt/experts/expert_routes.h"

namespace plumb { inline namespace kernels {

struct SharedPicks {
  PickRouting own;           ///< routing of the own tokens; sequence: S
  std::int64_t members = 1;  ///< n
  std::int64_t member = 0;
  bool is_zigzag = false;  ///< true: member r has runs r and 2n-1-r of 2n equal runs; false: run r of n

  PLUMB_SIMT std::int64_t whole_sequence() const { return own.sequence * members; }

  /// Returns the position in the sequence of a member's row.
  PLUMB_SIMT std::int64_t position(std::int64_t of, std::int64_t row) const {
    if (!is_zigzag) return of * own.sequence + row;
    const std::int64_t run = own.sequence / 2;
    return row < run ? of * run + row : (2 * members - 1 - of) * run + row - run;
  }
};

}}  // namespace plumb::kernels

namespace plumb { inline namespace kernels { namespace simt {

/// Puts the picks of all members in the order of whole sequences. whole: [b, s, k], gathered: [n, b, S, k]
struct SpreadPicks {
  std::int32_t* whole;
  const std::int32_t* gathered;
  SharedPicks size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t each = size.own.tokens() * size.own.picks;
    for_each_element(thread, size.members * each, [&](std::int64_t i) {
      const std::int64_t token = i % each / size.own.picks, sequence = token / size.own.sequence;
      const std::int64_t position = size.position(i / each, token % size.own.sequence);
      whole[(sequence * size.whole_sequence() + position) * size.own.picks + i % size.own.picks] = gathered[i];
    });
  }
};

/// Keeps the own picks that their experts take. kept: [b, S, k], -1 for the others; places: [b, S, k], all set to -1;
/// picks: [b, S, k]; whole_places: [b, s, k], negative where a pick is dropped
struct KeepOwnPicks {
  std::int32_t* kept;
  std::int32_t* places;
  const std::int32_t* picks;
  const std::int32_t* whole_places;
  SharedPicks size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, size.own.tokens() * size.own.picks, [&](std::int64_t i) {
      const std::int64_t token = i / size.own.picks, sequence = token / size.own.sequence;
      const std::int64_t position = size.position(size.member, token % size.own.sequence);
      const std::int64_t whole = (sequence * size.whole_sequence() + position) * size.own.picks + i % size.own.picks;
      kept[i] = whole_places[whole] < 0 ? -1 : picks[i];
      places[i] = -1;
    });
  }
};

}}}  // namespace plumb::kernels::simt

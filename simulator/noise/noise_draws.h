#pragma once
// The factors of one run with noise, each a function of its purpose, so that the engines draw alike.

#include <cstdint>
#include <vector>

#include "simulator/noise/noise.h"
#include "simulator/noise/random_factor.h"

namespace plumb { inline namespace simulator {

/// The distributions of a NoiseSpec. Throws SpecError as factor_shape() does.
struct NoiseShapes {
  FactorShape action;
  FactorShape rank;
  FactorShape communication;
};
NoiseShapes noise_shapes(const NoiseSpec& noise);

class NoiseDraws {
 public:
  /// `shapes` must outlive it.
  NoiseDraws(const NoiseShapes& shapes, std::uint64_t seed, int run, int replicas, int ranks);

  /// Returns the factor of a compute action (numbered by schedules/dependencies/dependencies.h) and its rank together.
  double compute(int replica, int rank, std::int32_t action) const;
  /// Returns the factor of a message or a move.
  double transfer(int replica, std::int32_t action) const;
  /// Returns the factor of a collective, which all that run it share.
  double collective(std::int64_t which) const;

  /// Returns the number of a sum over the copies of a stage, the same for every copy.
  static std::int64_t sum_of_copies(std::int32_t first_stage, std::int16_t part) {
    return -1 - (static_cast<std::int64_t>(first_stage) << 16 | part);
  }

 private:
  const NoiseShapes& shapes_;
  int ranks_;
  std::uint64_t collective_base_;
  std::vector<std::uint64_t> action_bases_;    ///< [replica] base of keys
  std::vector<std::uint64_t> transfer_bases_;  ///< [replica] base of keys
  std::vector<double> rank_factors_;           ///< [replica * ranks + rank]
};

/// Returns a duration multiplied by a factor: exact where the factor is 1, and at most kLatestMoment.
inline SimTime times_factor(SimTime duration, double factor) {
  if (factor == 1) return duration;  // exact, also where a double is not
  return at_most_latest(static_cast<double>(duration.count()) * factor + 0.5);
}

}}  // namespace plumb::simulator

#include "simulator/noise/noise_draws.h"

namespace plumb { inline namespace simulator {
namespace {

/// The purpose of a draw.
enum class Drawn : std::uint64_t { kAction, kRank, kMessage, kCollective };

double factor(const FactorShape& shape, std::uint64_t base, std::int64_t which) {
  return random_factor(shape, random_key({base, static_cast<std::uint64_t>(which)}));
}

}  // namespace

NoiseShapes noise_shapes(const NoiseSpec& noise) {
  return {.action = factor_shape(noise.distribution, noise.cv),
          .rank = factor_shape(noise.distribution, noise.rank_cv),
          .communication = factor_shape(noise.distribution, noise.communication_cv)};
}

NoiseDraws::NoiseDraws(const NoiseShapes& shapes, std::uint64_t seed, int run, int replicas, int ranks)
    : shapes_(shapes), ranks_(ranks) {
  const auto base = [&](Drawn what, int replica) {
    return random_key(
        {seed, static_cast<std::uint64_t>(run), static_cast<std::uint64_t>(what), static_cast<std::uint64_t>(replica)});
  };
  collective_base_ = base(Drawn::kCollective, 0);
  for (int replica = 0; replica < replicas; ++replica) {
    action_bases_.push_back(base(Drawn::kAction, replica));
    transfer_bases_.push_back(base(Drawn::kMessage, replica));
    for (int rank = 0; rank < ranks; ++rank)
      rank_factors_.push_back(factor(shapes.rank, base(Drawn::kRank, replica), rank));
  }
}

double NoiseDraws::compute(int replica, int rank, std::int32_t action) const {
  return factor(shapes_.action, action_bases_[replica], action) * rank_factors_[replica * ranks_ + rank];
}

double NoiseDraws::transfer(int replica, std::int32_t action) const {
  return factor(shapes_.communication, transfer_bases_[replica], action);
}

double NoiseDraws::collective(std::int64_t which) const {
  return factor(shapes_.communication, collective_base_, which);
}

}}  // namespace plumb::simulator

#include "executor/measure/slowdown_sample.h"

#include <algorithm>

namespace plumb { inline namespace executor {

std::optional<double> slowdown_of(const SlowdownSample& sample) {
  const Seconds lost = std::max(Seconds{0}, sample.beside - sample.alone);
  const Seconds overlap = std::min(sample.collective, sample.beside);
  if (lost.count() == 0) return 0.0;
  if (lost >= overlap) return std::nullopt;
  return lost / (overlap - lost);
}

}}  // namespace plumb::executor

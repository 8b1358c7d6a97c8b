#include "planner/calibrate/fit_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::size_t kLinkConstants = 3;  // latency, rendezvous, seconds a byte
constexpr std::int64_t kBurstStep = 4096;
constexpr std::size_t kFewest = 6;

using Vector = std::array<double, kLinkConstants>;

/// Solves a symmetric system by Gauss's elimination; a constant that nothing depends on is 0.
Vector solve(std::array<Vector, kLinkConstants> a, Vector b) {
  for (std::size_t pivot = 0; pivot < kLinkConstants; ++pivot) {
    if (std::abs(a[pivot][pivot]) < std::numeric_limits<double>::min()) continue;
    for (std::size_t row = 0; row < kLinkConstants; ++row) {
      if (row == pivot) continue;
      const double factor = a[row][pivot] / a[pivot][pivot];
      for (std::size_t column = 0; column < kLinkConstants; ++column) a[row][column] -= factor * a[pivot][column];
      b[row] -= factor * b[pivot];
    }
  }
  Vector x{};
  for (std::size_t i = 0; i < kLinkConstants; ++i)
    x[i] = std::abs(a[i][i]) < std::numeric_limits<double>::min() ? 0 : b[i] / a[i][i];
  return x;
}

/// Returns the three constants for an eager limit and a burst; nothing where one would be negative.
std::optional<MessageLink> constants_for(const std::vector<KernelSample>& samples, std::int64_t eager,
                                         std::int64_t burst) {
  std::array<Vector, kLinkConstants> squares{};
  Vector products{};
  for (const KernelSample& sample : samples) {
    const double weight = 1 / sample.median.count();
    const std::int64_t bytes = sample.shape.front();
    const Vector row{weight, bytes > eager ? weight : 0,
                     weight * static_cast<double>(std::max<std::int64_t>(0, bytes - burst))};
    for (std::size_t i = 0; i < kLinkConstants; ++i) {
      for (std::size_t j = 0; j < kLinkConstants; ++j) squares[i][j] += row[i] * row[j];
      products[i] += row[i];  // the target is the relative time, 1
    }
  }
  const Vector x = solve(squares, products);
  if (!(x[0] >= 0) || !(x[1] >= 0) || !(x[2] > 0)) return {};
  return MessageLink{.latency = Seconds{x[0]},
                     .rendezvous = Seconds{x[1]},
                     .eager_bytes = eager,
                     .bytes_per_second = 1 / x[2],
                     .burst_bytes = burst};
}

double relative_error(const MessageLink& link, const KernelSample& sample) {
  return message_time(link, sample.shape.front()) / sample.median - 1;
}

double squared_error(const MessageLink& link, const std::vector<KernelSample>& samples) {
  double sum = 0;
  for (const KernelSample& sample : samples) sum += std::pow(relative_error(link, sample), 2);
  return sum;
}

}  // namespace

Seconds hop_latency(const MessageLink& link, std::int64_t bytes) {
  return link.latency + (bytes > link.eager_bytes ? link.rendezvous : Seconds{0});
}

Seconds message_time(const MessageLink& link, std::int64_t bytes) {
  const auto behind_burst = static_cast<double>(std::max<std::int64_t>(0, bytes - link.burst_bytes));
  return hop_latency(link, bytes) + Seconds{behind_burst / link.bytes_per_second};
}

MessageFit fit_messages(const std::vector<KernelSample>& given) {
  std::vector<KernelSample> samples = given;
  std::ranges::sort(samples, {}, [](const KernelSample& sample) { return sample.shape.front(); });
  if (samples.size() < kFewest) throw SpecError("a network's constants need messages of 6 sizes or more");
  MessageFit best;
  double least = std::numeric_limits<double>::infinity();
  const std::int64_t largest = samples.back().shape.front();
  for (std::size_t limit = 0; limit + 1 < samples.size(); ++limit)
    for (std::int64_t burst = 0; burst <= largest / 2; burst += kBurstStep) {
      const std::optional<MessageLink> link = constants_for(samples, samples[limit].shape.front(), burst);
      if (!link) continue;
      const double error = squared_error(*link, samples);
      if (!(error < least)) continue;
      least = error;
      best.link = *link;
    }
  if (std::isinf(least))
    throw SpecError("larger messages take no longer than small ones: these are no times of messages");
  for (const KernelSample& sample : samples) {
    const double residual_pct = 100 * std::abs(relative_error(best.link, sample));
    best.mean_residual_pct += residual_pct / static_cast<double>(samples.size());
    best.worst_residual_pct = std::max(best.worst_residual_pct, residual_pct);
  }
  return best;
}

}}  // namespace plumb::planner

#include "planner/calibrate/fit_messages.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {

std::vector<KernelSample> samples_of(const MessageLink& link) {
  std::vector<KernelSample> samples;
  for (const std::int64_t kib : {1, 16, 32, 60, 72, 96, 128, 256, 512, 1024})
    samples.push_back({.kernel = "message", .shape = {kib << 10}, .median = message_time(link, kib << 10)});
  return samples;
}

}  // namespace

TEST_CASE("a link's constants come back from its times") {
  const MessageLink link{.latency = Seconds{50e-6},
                         .rendezvous = Seconds{300e-6},
                         .eager_bytes = 60 << 10,
                         .bytes_per_second = 1.2e8,
                         .burst_bytes = 124 << 10};
  const MessageFit fit = fit_messages(samples_of(link));
  CHECK(fit.link.latency.count() == doctest::Approx(50e-6));
  CHECK(fit.link.rendezvous.count() == doctest::Approx(300e-6));
  CHECK(fit.link.eager_bytes == 60 << 10);
  CHECK(fit.link.bytes_per_second == doctest::Approx(1.2e8));
  CHECK(fit.link.burst_bytes == 124 << 10);
  CHECK(fit.worst_residual_pct < 1e-6);
}

TEST_CASE("a plain link has neither burst nor rendezvous") {
  const MessageFit fit = fit_messages(samples_of({.latency = Seconds{1e-5}, .bytes_per_second = 1e9}));
  CHECK(fit.link.burst_bytes == 0);
  CHECK(fit.link.rendezvous.count() == doctest::Approx(0).epsilon(1e-12));
  CHECK(fit.link.bytes_per_second == doctest::Approx(1e9));
}

TEST_CASE("a message is late by the rendezvous where it is announced") {
  const MessageLink link{.latency = Seconds{1}, .rendezvous = Seconds{2}, .eager_bytes = 100, .bytes_per_second = 10};
  CHECK(hop_latency(link, 100) == Seconds{1});
  CHECK(hop_latency(link, 101) == Seconds{3});
  CHECK(message_time(link, 200) == Seconds{23});
}

TEST_CASE("too few sizes, or times that do not grow, are refused") {
  std::vector<KernelSample> samples = samples_of({.latency = Seconds{1e-5}, .bytes_per_second = 1e9});
  samples.resize(5);
  CHECK_THROWS_AS(fit_messages(samples), SpecError);
  samples = samples_of({.latency = Seconds{1}, .bytes_per_second = 1e30});
  std::size_t i = samples.size();
  for (KernelSample& sample : samples) sample.median = Seconds{static_cast<double>(i--)};
  CHECK_THROWS_AS(fit_messages(samples), SpecError);
}

}  // namespace plumb::test

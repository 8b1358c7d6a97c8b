#include "planner/price/collective/nccl_launch_fit.h"

#include <array>
#include <cmath>

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

CollectiveObservation observation(NcclProtocol protocol, double latency_us, double transfer_us, double measured_us) {
  return {.estimate = {.protocol = protocol,
                       .latency = Seconds{latency_us * 1e-6},
                       .transfer = Seconds{transfer_us * 1e-6}},
          .measured = Seconds{measured_us * 1e-6}};
}

}  // namespace

TEST_CASE("launches and bandwidth come out of times that they made") {
  // The measurements add 10 us for LL and 30 us for Simple, at half the bandwidth.
  const LaunchFit fit = fit_launches({observation(NcclProtocol::kLL, 5, 1, 5 + 10 + 2),
                                      observation(NcclProtocol::kLL128, 8, 10, 8 + 10 + 20),
                                      observation(NcclProtocol::kSimple, 20, 100, 20 + 30 + 200),
                                      observation(NcclProtocol::kSimple, 20, 1000, 20 + 30 + 2000)});
  CHECK(fit.calibration.low_latency_launch.count() == doctest::Approx(10e-6));
  CHECK(fit.calibration.simple_launch.count() == doctest::Approx(30e-6));
  CHECK(fit.calibration.bandwidth_scale == doctest::Approx(0.5));
  CHECK(fit.observations[LaunchFit::kLowLatency] == 2);
  CHECK(fit.observations[LaunchFit::kScale] == 4);
  CHECK(fit.residual_ratio < 1e-12);
}

TEST_CASE("a launch below 0 is 0, and the rest is fitted again") {
  const LaunchFit fit =
      fit_launches({observation(NcclProtocol::kSimple, 20, 100, 110), observation(NcclProtocol::kSimple, 20, 200, 210),
                    observation(NcclProtocol::kSimple, 20, 400, 420)});
  CHECK(fit.calibration.simple_launch == Seconds{0});
  CHECK_FALSE(fit.standard_error[LaunchFit::kSimple]);
  CHECK(fit.fitted == std::array{false, false, true});
  // Least squares of (t - 20) / t = x transfer / t give x = sum (t-20) s / t^2 / sum s^2 / t^2.
  const double top = 90.0 * 100 / (110.0 * 110) + 190.0 * 200 / (210.0 * 210) + 400.0 * 400 / (420.0 * 420);
  const double bottom = 1e4 / (110.0 * 110) + 4e4 / (210.0 * 210) + 16e4 / (420.0 * 420);
  CHECK(fit.calibration.bandwidth_scale == doctest::Approx(bottom / top));
}

TEST_CASE("what no observation asks for stays as it is, and says so") {
  const LaunchFit nothing = fit_launches({});
  CHECK(nothing.calibration == NcclCalibration{});
  // One size cannot tell launch from bandwidth: the bandwidth explains everything.
  const LaunchFit one = fit_launches({observation(NcclProtocol::kSimple, 20, 100, 70)});
  CHECK(one.calibration.simple_launch == Seconds{0});
  CHECK(one.calibration.bandwidth_scale == doctest::Approx(2));
  CHECK_FALSE(one.standard_error[LaunchFit::kScale]);
  CHECK(one.observations[LaunchFit::kLowLatency] == 0);
}

TEST_CASE("times that do not grow with the size by more than their noise tell nothing") {
  const auto sent = [](double transfer_us, double measured_us) {
    return observation(NcclProtocol::kSimple, 0, transfer_us, measured_us);
  };
  // On a busy host the larger message came out faster, or no slower than the spread of the times.
  for (const LaunchFit& fit : {fit_launches({sent(10, 1000), sent(20, 900), sent(40, 950)}),
                               fit_launches({sent(10, 900), sent(20, 1000), sent(40, 700), sent(80, 1000)})}) {
    CHECK(fit.calibration == NcclCalibration{});
    CHECK(fit.fitted == std::array{false, false, false});
    CHECK(fit.observations[LaunchFit::kScale] > 0);
  }
  CHECK(fit_launches({sent(10, 900), sent(20, 1000), sent(40, 1200), sent(80, 1600)}).fitted[LaunchFit::kScale]);
}

TEST_CASE("the standard error of a mean of launches is that of statistics") {
  // Launches are 9 and 11 us, and a bandwidth and a launch of Simple fit exactly: four observations less three
  // constants leave one degree of freedom.
  const LaunchFit fit =
      fit_launches({observation(NcclProtocol::kLL, 0, 0, 9), observation(NcclProtocol::kLL, 0, 0, 11),
                    observation(NcclProtocol::kSimple, 0, 1e6, 1e6), observation(NcclProtocol::kSimple, 0, 2e6, 2e6)});
  REQUIRE(fit.standard_error[LaunchFit::kLowLatency]);
  // The launch is the mean with weights 1 / t^2.
  const double mean = (1.0 / 9 + 1.0 / 11) / (1.0 / 81 + 1.0 / 121);
  CHECK(fit.calibration.low_latency_launch.count() == doctest::Approx(mean * 1e-6));
  const double squares = (mean / 9 - 1) * (mean / 9 - 1) + (mean / 11 - 1) * (mean / 11 - 1);
  CHECK(*fit.standard_error[LaunchFit::kLowLatency] ==
        doctest::Approx(std::sqrt(squares / 1 / (1.0 / 81 + 1.0 / 121)) * 1e-6));
}

}  // namespace plumb::test

#include "planner/spec/host_spec.h"

#include <fmt/format.h>

namespace plumb {

HostSpec read_host(StrictObject object) {
  constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
  constexpr double kGiga = 1e9;
  constexpr double kLargestGib = 1e9;
  HostSpec host;
  const double gib = object.positive_number("memory_gib");
  if (gib > kLargestGib)
    object.fail("memory_gib", fmt::format("{} is out of range: give at most {}", gib, kLargestGib));
  host.memory_bytes = static_cast<std::int64_t>(gib * kGibibyte + 0.5);
  host.memory_bytes_per_second = object.positive_number("memory_bandwidth_gb_per_s") * kGiga;
  if (object.has("memory_efficiency")) host.memory_efficiency = object.fraction("memory_efficiency");
  host.device_bytes_per_second = object.positive_number("device_bandwidth_gb_per_s") * kGiga;
  if (object.has("device_efficiency")) host.device_efficiency = object.fraction("device_efficiency");
  object.finish();
  return host;
}

}  // namespace plumb

#include "planner/spec/host_spec.h"

#include <fmt/format.h>

#include "schedules/units.h"

namespace plumb { inline namespace planner {

HostSpec read_host(StrictObject object) {
  constexpr double kLargestGib = 1e9;
  constexpr std::int64_t kMostOnSwitch = 1'000'000;
  HostSpec host;
  const double gib = object.positive_number("memory_gib");
  if (gib > kLargestGib)
    object.fail("memory_gib", fmt::format("{} is out of range: give at most {}", gib, kLargestGib));
  host.memory_bytes = static_cast<std::int64_t>(gib * kGibibyte + 0.5);
  host.memory_bytes_per_second = object.positive_number("memory_bandwidth_gb_per_s") * kGiga;
  if (object.has("memory_efficiency")) host.memory_efficiency = object.fraction("memory_efficiency");
  host.device_bytes_per_second = object.positive_number("device_bandwidth_gb_per_s") * kGiga;
  if (object.has("device_efficiency")) host.device_efficiency = object.fraction("device_efficiency");
  const std::int64_t per_switch = object.positive_integer_or("devices_per_switch", 1);
  if (per_switch > kMostOnSwitch)
    object.fail("devices_per_switch", fmt::format("{} is out of range: give at most {}", per_switch, kMostOnSwitch));
  host.devices_per_switch = static_cast<int>(per_switch);
  host.nic_shares_device_link = object.boolean_or("nic_shares_device_link", false);
  object.finish();
  return host;
}

}}  // namespace plumb::planner

#pragma once
// The host of a node as far as offloading needs it: its memory, and the link between each device and the host.
//
//   "host": {"memory_gib": 2048, "memory_bandwidth_gb_per_s": 614, "memory_efficiency": 0.8,
//            "device_bandwidth_gb_per_s": 63, "device_efficiency": 0.88,
//            "devices_per_switch": 2, "nic_shares_device_link": true}

#include <cstdint>

#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {

struct HostSpec {
  std::int64_t memory_bytes = 0;       ///< memory of a node
  double memory_bytes_per_second = 0;  ///< rate of a node's reads and writes together
  double memory_efficiency = 1;        ///< share of that rate that an update on the CPU and moved data reach
  double device_bytes_per_second = 0;  ///< rate between one device and the host, each way
  double device_efficiency = 1;
  int devices_per_switch = 1;           ///< devices that share one link of that rate to the host
  bool nic_shares_device_link = false;  ///< true: what a device exchanges with its NIC also crosses the device's link

  friend bool operator==(const HostSpec&, const HostSpec&) = default;
};

/// Reads the block. Throws SpecError naming the key if one is unknown, missing or out of range.
HostSpec read_host(StrictObject object);

}}  // namespace plumb::planner

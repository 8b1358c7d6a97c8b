#pragma once
// The constants of NCCL's cost model: latencies, bandwidth caps and the tree's correction by size.
//
// Source: NVIDIA/nccl v2.30.7 src/graph/tuning.cc, Copyright NVIDIA Corporation, Apache-2.0; facts restated.

#include <array>
#include <cstdint>

#include "planner/spec/nccl_spec.h"

namespace plumb { inline namespace planner {

enum class NcclAlgorithm : std::uint8_t { kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree, kPat };
enum class NcclProtocol : std::uint8_t { kLL, kLL128, kSimple };
inline constexpr int kNcclAlgorithmCount = 7;
inline constexpr int kNcclProtocolCount = 3;

const char* algorithm_name(NcclAlgorithm algorithm);  ///< as NCCL_ALGO spells it: "Tree", "NVLSTree"
const char* protocol_name(NcclProtocol protocol);     ///< as NCCL_PROTO spells it: "LL128"

/// The three wires that a hop can take.
enum class NcclWire : std::uint8_t { kNvlink, kPcie, kNetwork };

/// Microseconds of a launch, and of a hop; 0 where NCCL has no such combination.
double base_latency_us(NcclAlgorithm algorithm, NcclProtocol protocol);
double hop_latency_us(NcclWire wire, NcclAlgorithm algorithm, NcclProtocol protocol);

/// Microseconds that a ring's hop takes at least where there are several nodes: the host posts to the NIC.
double network_post_us(HostCpu cpu, NcclProtocol protocol);

// Caps in GB/s on 1, 2 and more nodes (`nodes` is the number of them).
double ll_bus_cap(NcclGeneration generation, HostCpu cpu, int nodes);
double ring_ll128_channel_cap(NcclGeneration generation);
double tree_ll128_channel_cap(NcclGeneration generation, int nodes);
double tree_simple_channel_cap(NcclGeneration generation, int nodes);
double nvls_tree_channel_cap(NcclGeneration generation, int nodes);  ///< 0: NVLS is not there

/// Share of the links' speed that switches reach when they reduce; 0 before Hopper.
double nvls_efficiency(NcclGeneration generation);

/// By which a tree all-reduce of that many bytes is slower than its bandwidth says, as a factor on bandwidth.
double tree_correction(NcclProtocol protocol, std::int64_t bytes);

}}  // namespace plumb::planner

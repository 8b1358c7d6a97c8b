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

const char* algorithm_name(NcclAlgorithm algorithm);  ///< name in NCCL_ALGO: "Tree", "NVLSTree"
const char* protocol_name(NcclProtocol protocol);     ///< name in NCCL_PROTO: "LL128"

/// The three kinds of wire that a hop can take.
enum class NcclWire : std::uint8_t { kNvlink, kPcie, kNetwork };

/// Return the microseconds of a launch, and of a hop; 0 where NCCL has no such combination.
double base_latency_us(NcclAlgorithm algorithm, NcclProtocol protocol);
double hop_latency_us(NcclWire wire, NcclAlgorithm algorithm, NcclProtocol protocol);

/// Returns the least microseconds of a ring's hop where there are several nodes: the host posts to the NIC.
double network_post_us(HostCpu cpu, NcclProtocol protocol);

// These return caps in GB/s on 1, 2 and more nodes (`nodes` is the number of them).
double ll_bus_cap(NcclGeneration generation, HostCpu cpu, int nodes);
double ring_ll128_channel_cap(NcclGeneration generation);
double tree_ll128_channel_cap(NcclGeneration generation, int nodes);
double tree_simple_channel_cap(NcclGeneration generation, int nodes);
double nvls_tree_channel_cap(NcclGeneration generation, int nodes);  ///< 0: NVLS is not available

/// Returns the share of the links' speed that switches reach when they reduce; 0 before Hopper.
double nvls_efficiency(NcclGeneration generation);

/// Returns the factor on bandwidth by which a tree all-reduce of that many bytes is slower than its bandwidth says.
double tree_correction(NcclProtocol protocol, std::int64_t bytes);

}}  // namespace plumb::planner

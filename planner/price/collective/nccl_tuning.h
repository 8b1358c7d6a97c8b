#pragma once
// NCCL's own estimate of a collective, and the algorithm and protocol that it chooses by it.
//
//   const NcclTuning tuning = nccl_tuning(machine, {.ranks = 8}, CollectiveKind::kAllReduce);
//   const NcclEstimate chosen = nccl_choice(tuning, 1 << 30);    // NVLS Simple on 8 H100
//
// time = latency + bytes / bandwidth for each pair of algorithm and protocol; NCCL chooses the least. With n ranks on N
// nodes, g = n / N, the hop times of nccl_tables.h, L the NIC's latency (twice for Simple, which flushes):
//   ring           latency  base + (steps - crossings) max(inside, post) + crossings (network + L)
//                  steps 2(n-1) all-reduce, n-1 gather and scatter; crossings 2(N-1), N-1; x 1.4 (1.9 before Ampere)
//                  for Simple all-reduces on several nodes of 64 bytes and more a channel and rank
//                  bandwidth channels x speed (LL half of it, LL128 .92, both capped) x n / steps
//   ring, broadcast  latency  base + hop; bandwidth that of the bus
//   tree           latency  base + 2 ((g-1) inside + floor(log2 N) (network + L)); all-reduce only
//                  bandwidth min(.92 bus, cap) / 2, LL / 3.8, LL128 x 7/9 on one node and 15/16 on more; x .85 where
//                  the tree is plain; corrected by size
//   NVLS           latency  inside (+ network + L, and only with SHARP in the network, on several nodes)
//   NVLSTree       latency  inside + 2 floor(log2 N) (network + L); all-reduce on several nodes
//                  bandwidth of a channel min(speed x efficiency (c-1)/c x (2 | gather and scatter (g-1)/g), network);
//                  the sum x n / steps for all-reduce
//   CollNetDirect  latency  2 (min(1, g-1) inside + .4 (g-1)) + network + L
//   CollNetChain   latency  2 (g-1) inside + network + L
//   PAT            latency  base + floor(log2 N) (network + L) / 3.5 + 2.8 n; gather and scatter, one rank a node
//                  bandwidth .75 bus
// A rank alone on its node waits for the network like a tree's hop. NCCL also caps NVLS by NIC speed on one node. That
// cap is left out: it makes published Blackwell runs 14 % too slow. Source: NVIDIA/nccl v2.30.7 src/graph/tuning.cc,
// Copyright NVIDIA Corporation, Apache-2.0; facts restated.

#include <array>
#include <cstdint>
#include <optional>

#include "planner/price/collective/nccl_channels.h"
#include "planner/price/collective/nccl_tables.h"
#include "schedules/cost_table.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// One algorithm with one protocol; bandwidth 0: not enabled.
struct NcclPath {
  Seconds latency{0};
  double bytes_per_second = 0;
};

/// The part of the model that does not depend on the size.
struct NcclTuning {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  GroupPlacement group;
  NcclGeneration generation = NcclGeneration::kAmpere;
  NcclGraphs graphs;
  std::array<std::array<NcclPath, kNcclProtocolCount>, kNcclAlgorithmCount> paths{};  ///< [algorithm][protocol]
};

struct NcclEstimate {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  NcclProtocol protocol = NcclProtocol::kSimple;
  Seconds latency{0};
  Seconds transfer{0};  ///< bytes over bandwidth
};

/// Returns the tuning of a group of two ranks or more; `kind` is any but all-to-all (nccl_point_to_point.h).
NcclTuning nccl_tuning(const NcclMachine& machine, const GroupPlacement& group, CollectiveKind kind);

/// Returns the path that NCCL takes for `bytes`, the whole buffer of one rank (the gathered result for all-gather),
/// among all enabled paths, or among those of `only`. `only` must be enabled.
NcclEstimate nccl_choice(const NcclTuning& tuning, std::int64_t bytes, std::optional<NcclAlgorithm> only = {});

/// Returns the time with the cluster's own constants; the choice does not depend on them.
Seconds calibrated(const NcclCalibration& calibration, const NcclEstimate& estimate);

}}  // namespace plumb::planner

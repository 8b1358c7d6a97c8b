#pragma once
// A call of NCCL as a rank makes it on a stream.

#include <cstdint>
#include <span>

#include "executor/transport/nccl/nccl_call.h"
#include "executor/transport/nccl/nccl_port.h"

namespace plumb { inline namespace executor {

/// Addresses of a call's bytes on this device.
struct NcclPlaces {
  const void* from = nullptr;
  void* to = nullptr;                        ///< for all_gather and reduce_scatter the whole buffer, in place
  std::span<const std::int64_t> bounds;      ///< [members + 1] of its blocks, in elements; empty: equal ones
  NcclElement element = NcclElement::kFp32;  ///< its size divides the call's bytes
};

/// Makes a call. NCCL's own all_gather and reduce_scatter want equal blocks; others are broadcasts, or reduces, in a
/// group.
void make_nccl_call(NcclPort& port, const CommunicatorRanks& group, int rank, const NcclCall& call,
                    const NcclPlaces& places, NcclPort::Communicator communicator, NcclPort::Stream stream);

/// Makes the sends and receives of an all-to-all without the own block, or of a shift by one, in a group. from, to:
/// [members] blocks of `bytes` each, or one.
void make_nccl_pairs(NcclPort& port, const CommunicatorRanks& group, int rank, bool is_shift, std::int64_t bytes,
                     const NcclPlaces& places, NcclPort::Communicator communicator, NcclPort::Stream stream);

}}  // namespace plumb::executor

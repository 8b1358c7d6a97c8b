#include "executor/transport/nccl/joined_communicators.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {
namespace {

/// Kernels of four channels may wait at once on a rank, and together leave compute more than two thirds of 108 SMs.
constexpr int kChannelBlocks = 8;
constexpr int kGroupBlocks = 24;  // with which a group is counted; NCCL decides their number itself

std::int64_t number_or(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  const std::int64_t given = text == nullptr ? 0 : std::atoll(text);
  return given > 0 ? given : otherwise;
}

bool has_member(const CommunicatorRanks& communicator, int rank) {
  return std::ranges::find(communicator.ranks, rank) != communicator.ranks.end();
}

}  // namespace

std::int64_t nccl_buffer_bytes(const std::vector<CommunicatorRanks>& communicators, int rank) {
  constexpr std::int64_t kLowLatencyBytes = 512 << 10, kLowLatency128Bytes = 120 * 640 * 8 * 8;
  const std::int64_t of_block = number_or("NCCL_BUFFSIZE", 4 << 20) + kLowLatencyBytes + kLowLatency128Bytes;
  std::int64_t bytes = 0;
  for (const CommunicatorRanks& communicator : communicators) {
    if (!has_member(communicator, rank)) continue;
    const std::int64_t blocks = number_or("NCCL_MAX_CTAS", communicator.is_channel ? kChannelBlocks : kGroupBlocks);
    bytes += (communicator.is_channel ? 1 : 2) * blocks * of_block;
  }
  return bytes;
}

void JoinedCommunicators::join(const std::vector<CommunicatorRanks>& communicators, int rank,
                               const std::vector<NcclId>& ids, const NcclPatience& patience) {
  const std::int64_t needed = nccl_buffer_bytes(communicators, rank), there = port_.free_bytes();
  constexpr double kMiB = 1 << 20;
  if (needed > there)
    throw RunError(fmt::format(
        "rank {}: NCCL's buffers take about {:.0f} MiB for {} communicators, and beside weights and activations the "
        "device has {:.0f} MiB free; take a smaller micro-batch or model, or set NCCL_MAX_CTAS or NCCL_BUFFSIZE lower",
        rank, static_cast<double>(needed) / kMiB,
        std::ranges::count_if(communicators, [&](const CommunicatorRanks& one) { return has_member(one, rank); }),
        static_cast<double>(there) / kMiB));
  for (std::size_t number = 0; number < communicators.size(); ++number) {
    const CommunicatorRanks& communicator = communicators[number];
    if (!has_member(communicator, rank)) continue;
    const auto member = std::ranges::find(communicator.ranks, rank) - communicator.ranks.begin();
    joined_[static_cast<std::int32_t>(number)] = std::make_unique<NcclCommunicatorHandle>(
        port_, ids[number], static_cast<int>(member), static_cast<int>(communicator.ranks.size()),
        NcclConfig{.most_blocks = communicator.is_channel ? kChannelBlocks : 0},
        fmt::format("rank {}, communicator {} ({}, ranks {})", rank, number, communicator.name,
                    fmt::join(communicator.ranks, ", ")),
        patience);
  }
}

void JoinedCommunicators::poll() const {
  for (const auto& [number, communicator] : joined_) communicator->poll("its calls run");
}

void JoinedCommunicators::finish() {
  for (const auto& [number, communicator] : joined_) communicator->finish();
  joined_.clear();
}

void JoinedCommunicators::abort() noexcept {
  std::vector<NcclPort::Communicator> all;
  for (const auto& [number, communicator] : joined_)
    if (const NcclPort::Communicator one = communicator->release(); one != nullptr) all.push_back(one);
  joined_.clear();
  if (!all.empty()) port_.abort(all);
}

}}  // namespace plumb::executor

#include "executor/transport/nccl/rank_board.h"

#include <algorithm>
#include <cassert>
#include <map>

#include <fmt/format.h>

#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {

std::vector<std::string> exchanged(RankBoard& board, const std::string& own) {
  std::vector<std::string> all;
  const std::string wrong = board.exchange(own, all);
  if (!wrong.empty()) throw RunError(wrong);
  return all;
}

void stop_if_told(RankBoard& board) {
  const std::string fault = board.told();
  if (!fault.empty()) throw RunAborted(fault);
}

void require_same_plan(RankBoard& board, std::uint64_t fingerprint) {
  const std::vector<std::string> prints = exchanged(board, fmt::format("{:016x}", fingerprint));
  std::vector<std::size_t> others;
  for (std::size_t rank = 0; rank < prints.size(); ++rank)
    if (prints[rank] != prints.front()) others.push_back(rank);
  if (others.empty()) return;
  throw SpecError(
      fmt::format("the ranks were given different plans: {} {} {} another than rank 0; start all of them with the same "
                  "files and options",
                  others.size() == 1 ? "rank" : "ranks", fmt::join(others, ", "), others.size() == 1 ? "has" : "have"));
}

void require_devices_apart(RankBoard& board, const std::string& device) {
  const std::vector<std::string> devices = exchanged(board, device);
  std::map<std::string, std::size_t> first;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const auto [found, is_new] = first.emplace(devices[rank], rank);
    if (!is_new)
      throw SpecError(
          fmt::format("ranks {} and {} are on one GPU, {}, which NCCL refuses: give each a GPU of its own "
                      "(CUDA_VISIBLE_DEVICES), or, to try without speed, an NCCL_HOSTID of its own",
                      found->second, rank, device));
  }
}

std::vector<NcclId> hand_out_ids(RankBoard& board, const std::vector<CommunicatorRanks>& communicators,
                                 NcclPort& port) {
  constexpr std::size_t kBytes = sizeof(NcclId::bytes);
  std::string own;
  for (const CommunicatorRanks& communicator : communicators) {
    if (communicator.ranks.front() != board.rank()) continue;
    const NcclId id = port.make_id();
    own.append(id.bytes.data(), kBytes);
  }
  const std::vector<std::string> all = exchanged(board, own);
  std::vector<std::size_t> taken(all.size(), 0);
  std::vector<NcclId> ids;
  for (const CommunicatorRanks& communicator : communicators) {
    const auto from = static_cast<std::size_t>(communicator.ranks.front());
    if (from >= all.size() || all[from].size() < taken[from] + kBytes)
      throw RunError(fmt::format("rank {} has not made the ids of its communicators", from));
    std::ranges::copy_n(all[from].begin() + static_cast<std::ptrdiff_t>(taken[from]), kBytes,
                        ids.emplace_back().bytes.begin());
    taken[from] += kBytes;
  }
  return ids;
}

}}  // namespace plumb::executor

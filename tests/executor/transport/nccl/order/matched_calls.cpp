#include "tests/executor/transport/nccl/order/matched_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace plumb::test {
namespace {

class Matcher {
 public:
  Matcher(const NcclOrder& order, std::size_t most) : order_(order), most_(most), lists_(order.communicators.size()) {
    for (std::size_t i = 0; i < lists_.size(); ++i) lists_[i].collectives.resize(order.communicators[i].ranks.size());
  }

  MatchedCalls match() {
    for (std::size_t rank = 0; rank < order_.ranks.size(); ++rank) collect(rank);
    for (std::size_t i = 0; i < lists_.size() && result_.findings.size() < most_; ++i) pair_up(i);
    return std::move(result_);
  }

 private:
  struct Lists {
    std::vector<std::vector<Participant>> collectives;  // [member]
    struct Pair {
      std::vector<Participant> sends, receives;
    };
    std::map<std::pair<std::int32_t, std::int32_t>, Pair> pairs;  // (source, destination)
  };

  const OrderedCall& call_of(const Participant& one) const {
    return order_.ranks[static_cast<std::size_t>(one.rank)].calls[static_cast<std::size_t>(one.call)];
  }
  std::string text_of(const Participant& one) const { return text_of_call(order_, one.rank, one.call); }
  void find(std::string finding) {
    if (result_.findings.size() < most_) result_.findings.push_back(std::move(finding));
  }

  void collect(std::size_t rank) {
    const RankOrder& list = order_.ranks[rank];
    result_.match.emplace_back(list.calls.size(), -1);
    std::set<std::int32_t> groups;
    std::map<std::int32_t, std::int32_t> members;  // [communicator] this rank's number
    for (std::size_t i = 0; i < list.calls.size(); ++i) {
      const OrderedCall& call = list.calls[i];
      const Participant own{static_cast<std::int32_t>(rank), static_cast<std::int32_t>(i)};
      check_waits(list, own);
      if (!call.kind) continue;
      if (call.group != OrderedCall::kNone && (i == 0 || list.calls[i - 1].group != call.group) &&
          !groups.insert(call.group).second)
        find(fmt::format("{} belongs to a group that was closed before", text_of(own)));
      const std::vector<int>& ranks = order_.communicators[static_cast<std::size_t>(call.communicator)].ranks;
      const auto [it, is_new] = members.try_emplace(call.communicator, 0);
      if (is_new)
        it->second = static_cast<std::int32_t>(std::ranges::find(ranks, static_cast<int>(rank)) - ranks.begin());
      const std::int32_t member = it->second;
      const bool has_peer = call.peer >= 0 && static_cast<std::size_t>(call.peer) < ranks.size();
      const bool needs_peer = call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReceive ||
                              call.kind == CollectiveKind::kBroadcast || call.kind == CollectiveKind::kReduce;
      if (static_cast<std::size_t>(member) == ranks.size() || (needs_peer && !has_peer)) {
        find(fmt::format("{} lies outside its communicator", text_of(own)));
        continue;
      }
      Lists& lists = lists_[static_cast<std::size_t>(call.communicator)];
      if (call.kind == CollectiveKind::kSend)
        lists.pairs[{member, call.peer}].sends.push_back(own);
      else if (call.kind == CollectiveKind::kReceive)
        lists.pairs[{call.peer, member}].receives.push_back(own);
      else
        lists.collectives[static_cast<std::size_t>(member)].push_back(own);
    }
  }

  void check_waits(const RankOrder& list, const Participant& own) {
    const OrderedCall& call = call_of(own);
    for (std::int32_t i = 0; i < call.waits; ++i) {
      const std::int32_t wait = list.waits[static_cast<std::size_t>(call.first_wait + i)];
      if (wait < 0 || wait >= own.call)
        find(fmt::format("{} waits for call {}, which its host has not made yet", text_of(own), wait));
    }
  }

  std::int32_t meet(std::vector<Participant> all) {
    const auto number = static_cast<std::int32_t>(result_.participants.size());
    for (const Participant& one : all)
      result_.match[static_cast<std::size_t>(one.rank)][static_cast<std::size_t>(one.call)] = number;
    result_.participants.push_back(std::move(all));
    return number;
  }

  void pair_up(std::size_t communicator) {
    const Lists& lists = lists_[communicator];
    for (const auto& [ends, pair] : lists.pairs) {
      if (pair.sends.size() != pair.receives.size()) {
        const bool more_sends = pair.sends.size() > pair.receives.size();
        const std::vector<Participant>& longer = more_sends ? pair.sends : pair.receives;
        find(fmt::format("{} has no counterpart: {} sends and {} receives",
                         text_of(longer[std::min(pair.sends.size(), pair.receives.size())]), pair.sends.size(),
                         pair.receives.size()));
        continue;
      }
      for (std::size_t i = 0; i < pair.sends.size(); ++i) {
        if (call_of(pair.sends[i]).bytes != call_of(pair.receives[i]).bytes)
          find(fmt::format("{} meets {}", text_of(pair.sends[i]), text_of(pair.receives[i])));
        meet({pair.sends[i], pair.receives[i]});
      }
    }
    const std::vector<Participant>& first = lists.collectives.front();
    for (const std::vector<Participant>& other : lists.collectives) {
      for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i)
        if (!fit(call_of(first[i]), call_of(other[i])))
          find(fmt::format("{} meets {}", text_of(first[i]), text_of(other[i])));
      if (first.size() != other.size()) {
        const std::vector<Participant>& longer = first.size() > other.size() ? first : other;
        find(fmt::format("{} has no counterpart: {} and {} collectives",
                         text_of(longer[std::min(first.size(), other.size())]), first.size(), other.size()));
        return;
      }
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
      std::vector<Participant> all;
      for (const std::vector<Participant>& of_member : lists.collectives) all.push_back(of_member[i]);
      meet(std::move(all));
    }
  }

  static bool fit(const OrderedCall& a, const OrderedCall& b) {
    return a.kind == b.kind && a.bytes == b.bytes && a.peer == b.peer;
  }

  const NcclOrder& order_;
  const std::size_t most_;
  std::vector<Lists> lists_;  // [communicator]
  MatchedCalls result_;
};

}  // namespace

MatchedCalls match_calls(const NcclOrder& order, std::size_t most_findings) {
  return Matcher(order, most_findings).match();
}

}  // namespace plumb::test

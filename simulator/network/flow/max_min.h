#pragma once
// Fair rates of flows that share links: the max-min allocation, by progressive filling.
//
//   MaxMinProblem problem{.capacities = {50e9}};
//   add_flow(problem, 50e9, 1, {{0, 1}});   // a message, at most 50 GB/s
//   add_flow(problem, 40e9, 1, {{0, 1}});   // a gradient reduction beside it
//   MaxMinSolver().solve(problem) -> {25e9, 25e9}
//
// Maximise the smallest rate / weight, then the next, and so on, subject to
//   rate[f] <= cap[f],   sum over f of share[f, l] * rate[f] <= capacity[l]
// where share[f, l] is the bytes on link l for each byte of flow f. All rates rise together in proportion to their
// weights; a flow stops at its cap, or when a link on its way is full (Bertsekas & Gallager 1992, Data Networks,
// section 6.5.2; as a network model: Casanova et al. 2014, SimGrid).

#include <cstdint>
#include <vector>

namespace plumb { inline namespace simulator {

/// A flow's use of a link.
struct LinkUse {
  std::int32_t link = 0;
  double share = 1;  ///< bytes on the link for each byte of the flow; above 0

  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

struct MaxMinProblem {
  std::vector<double> capacities;          ///< [link] bytes/s
  std::vector<double> caps;                ///< [flow] bytes/s that it reaches alone
  std::vector<double> weights;             ///< [flow]
  std::vector<std::int32_t> first_use{0};  ///< [flows + 1] index into `uses`
  std::vector<LinkUse> uses;
};

void add_flow(MaxMinProblem& problem, double cap, double weight, const std::vector<LinkUse>& uses);

/// Solves problems. It keeps its working memory from one problem to the next, and nothing else.
class MaxMinSolver {
 public:
  /// Returns [flow] the rate, valid until the next call. A flow that no link holds back has exactly its cap: a link
  /// counts as full only where it would hold the rates down by more than a part in 1e12.
  const std::vector<double>& solve(const MaxMinProblem& problem);

  /// Returns, for the last problem, [flow] the link that holds it back, or -1 where its cap does.
  const std::vector<std::int32_t>& held_by() const { return held_by_; }
  /// Returns the links that are full, in the order in which they filled.
  const std::vector<std::int32_t>& filled() const { return filled_; }

 private:
  struct Link {
    double room = 0;   ///< capacity that settled flows leave
    double load = 0;   ///< sum of share * weight over the flows that still rise
    double level = 0;  ///< the rate per weight at which it is full
    std::int32_t rising = 0;
  };
  void settle(const MaxMinProblem& problem, std::int32_t flow, double rate);
  void index_flows_by_link(const MaxMinProblem& problem);

  std::vector<Link> links_;
  std::vector<std::int32_t> open_links_;  ///< links with rising flows
  std::vector<std::int32_t> first_flow_;  ///< [links + 1] index into flows_of_link_
  std::vector<std::int32_t> flows_of_link_;
  std::vector<std::int32_t> by_cap_;  ///< flows by cap / weight
  std::vector<bool> settled_;
  std::vector<double> rates_;
  std::vector<std::int32_t> held_by_;
  std::vector<std::int32_t> filled_;
};

}}  // namespace plumb::simulator

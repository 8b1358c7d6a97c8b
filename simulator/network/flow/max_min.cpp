#include "simulator/network/flow/max_min.h"

#include <algorithm>
#include <limits>

namespace plumb { inline namespace simulator {
namespace {

constexpr double kLevelTolerance = 1e-12;

}  // namespace

void add_flow(MaxMinProblem& problem, double cap, double weight, const std::vector<LinkUse>& uses) {
  problem.caps.push_back(cap);
  problem.weights.push_back(weight);
  problem.uses.insert(problem.uses.end(), uses.begin(), uses.end());
  problem.first_use.push_back(static_cast<std::int32_t>(problem.uses.size()));
}

void MaxMinSolver::index_flows_by_link(const MaxMinProblem& problem) {
  const auto links = problem.capacities.size();
  first_flow_.assign(links + 1, 0);
  for (const LinkUse& use : problem.uses) ++first_flow_[use.link + 1];
  for (std::size_t l = 0; l < links; ++l) first_flow_[l + 1] += first_flow_[l];
  flows_of_link_.resize(problem.uses.size());
  // The lists are filled from each link's end, so that first_flow_ is right again behind the loop.
  for (std::size_t l = 0; l < links; ++l) links_[l].rising = first_flow_[l + 1];
  for (auto f = static_cast<std::int32_t>(problem.caps.size()); f-- > 0;) {
    for (auto u = problem.first_use[f]; u < problem.first_use[f + 1]; ++u) {
      flows_of_link_[--links_[problem.uses[u].link].rising] = f;
    }
  }
}

void MaxMinSolver::settle(const MaxMinProblem& problem, std::int32_t flow, double rate) {
  settled_[flow] = true;
  rates_[flow] = rate;
  for (auto u = problem.first_use[flow]; u < problem.first_use[flow + 1]; ++u) {
    const LinkUse& use = problem.uses[u];
    Link& link = links_[use.link];
    --link.rising;
    link.room -= use.share * rate;
    link.load -= use.share * problem.weights[flow];
    if (link.rising > 0) link.level = std::max(0.0, link.room) / link.load;
  }
}

const std::vector<double>& MaxMinSolver::solve(const MaxMinProblem& problem) {
  const auto flows = static_cast<std::int32_t>(problem.caps.size());
  const auto links = static_cast<std::int32_t>(problem.capacities.size());
  rates_.assign(flows, 0);
  held_by_.assign(flows, -1);
  filled_.clear();
  settled_.assign(flows, false);
  links_.assign(links, {});
  index_flows_by_link(problem);
  for (std::int32_t l = 0; l < links; ++l) {
    links_[l].room = problem.capacities[l];
    links_[l].rising = first_flow_[l + 1] - first_flow_[l];
  }
  by_cap_.resize(flows);
  for (std::int32_t f = 0; f < flows; ++f) {
    by_cap_[f] = f;
    for (auto u = problem.first_use[f]; u < problem.first_use[f + 1]; ++u) {
      links_[problem.uses[u].link].load += problem.uses[u].share * problem.weights[f];
    }
  }
  open_links_.clear();
  for (std::int32_t l = 0; l < links; ++l) {
    if (links_[l].rising == 0) continue;
    links_[l].level = links_[l].room / links_[l].load;
    open_links_.push_back(l);
  }
  const auto cap_level = [&](std::int32_t f) { return problem.caps[f] / problem.weights[f]; };
  std::ranges::sort(by_cap_, {}, [&](std::int32_t f) { return std::pair(cap_level(f), f); });

  auto next_by_cap = by_cap_.begin();
  while (next_by_cap != by_cap_.end()) {
    if (settled_[*next_by_cap]) {
      ++next_by_cap;
      continue;
    }
    std::int32_t fullest = -1;
    double level = std::numeric_limits<double>::infinity();
    std::erase_if(open_links_, [&](std::int32_t l) { return links_[l].rising == 0; });
    for (const std::int32_t l : open_links_) {
      if (links_[l].level < level) {
        level = links_[l].level;
        fullest = l;
      }
    }
    if (fullest < 0 || cap_level(*next_by_cap) <= level * (1 + kLevelTolerance)) {
      settle(problem, *next_by_cap, problem.caps[*next_by_cap]);
      ++next_by_cap;
      continue;
    }
    filled_.push_back(fullest);
    for (auto i = first_flow_[fullest]; i < first_flow_[fullest + 1]; ++i) {
      const std::int32_t f = flows_of_link_[i];
      if (settled_[f]) continue;
      held_by_[f] = fullest;
      settle(problem, f, level * problem.weights[f]);
    }
  }
  return rates_;
}

}}  // namespace plumb::simulator

#pragma once
// A layer graph whose times somebody has measured: PipeDream's profiles (graph.txt) and Piper's inputs.
//
//   node7 -- Conv2d(...) -- forward_compute_time=1.2, backward_compute_time=2.5, activation_size=4096.0, ...
//   node7 -- node8
//
// with ms and bytes of a mini-batch.

#include <string>
#include <string_view>
#include <vector>

#include "planner/partition/chain_partition.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct ProfiledNode {
  std::string name;
  Seconds forward{0};
  Seconds backward{0};
  double activation_bytes = 0;  ///< that it hands on
  double kept_bytes = 0;        ///< of its activations for the backward
  double parameter_bytes = 0;
  std::vector<int> inputs;  ///< nodes before it

  friend bool operator==(const ProfiledNode&, const ProfiledNode&) = default;
};

/// A profile of PipeDream (Narayanan et al. 2019) or DAPPLE in a topological order that keeps the file's where it can;
/// nodes named Input are no work and left out. Throws SpecError with the line: no node or edge, a number that is none
/// or negative, an edge to a node that is not there, a cycle, no node at all.
std::vector<ProfiledNode> parse_pipedream_profile(std::string_view text, const std::string& file);

/// An input of Piper (Tarnawski et al. 2021): times of one sample, without tensor parallelism and recomputation. What
/// an edge carries stands at its source. Throws SpecError with the place as above.
std::vector<ProfiledNode> parse_piper_input(std::string_view text, const std::string& file);

/// The chain of these nodes; gradients are as large as weights, `optimizer_bytes` of state for each byte of weights.
Chain chain_of(const std::vector<ProfiledNode>& nodes, double optimizer_bytes);

}}  // namespace plumb::planner

#pragma once
// A layer graph with measured times: PipeDream's profiles (graph.txt) and Piper's inputs.
//
//   node7 -- Conv2d(...) -- forward_compute_time=1.2, backward_compute_time=2.5, activation_size=4096.0, ...
//   node7 -- node8
//
// Times are in ms and sizes in bytes, of a mini-batch.

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
  double activation_bytes = 0;  ///< size of the output
  double kept_bytes = 0;        ///< activations kept for the backward
  double parameter_bytes = 0;
  std::vector<int> inputs;  ///< indices of nodes before it

  friend bool operator==(const ProfiledNode&, const ProfiledNode&) = default;
};

/// Reads a profile of PipeDream (Narayanan et al. 2019) or DAPPLE. The nodes come in a topological order that keeps the
/// file's where it can; nodes named Input do no work and are left out. Throws SpecError with the line: no node or edge,
/// a number that is none or negative, an edge to a node that is not there, a cycle, no node at all.
std::vector<ProfiledNode> parse_pipedream_profile(std::string_view text, const std::string& file);

/// Reads an input of Piper (Tarnawski et al. 2021): times of one sample, without tensor parallelism and recomputation.
/// The bytes of an edge count as its source's output. Throws SpecError with the place, in the same cases.
std::vector<ProfiledNode> parse_piper_input(std::string_view text, const std::string& file);

/// Returns the chain of these nodes. Gradients are as large as weights; `optimizer_bytes` is the optimizer state for
/// each byte of weights.
Chain chain_of(const std::vector<ProfiledNode>& nodes, double optimizer_bytes);

}}  // namespace plumb::planner

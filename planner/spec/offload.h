#pragma once
// Parts of a training may wait in the hosts' memory while the devices do not need them (evaluate/host_offload.h).

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

struct Offload {
  bool optimizer = false;    ///< the optimizer's state, which the CPU updates
  bool activations = false;  ///< activations that are not needed soon

  friend bool operator==(const Offload&, const Offload&) = default;
};

/// Returns those that offload something.
const std::vector<Offload>& all_offloads();

/// Returns "none", "optimizer", "activations" or "optimizer+activations".
std::string_view offload_name(const Offload& offload);

/// Returns these names.
const std::vector<std::string>& offload_names();

/// Throws SpecError if the text is none of these names.
Offload offload_from_name(std::string_view name);

}}  // namespace plumb::planner

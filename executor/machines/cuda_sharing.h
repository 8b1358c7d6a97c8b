#pragma once
// How the ranks of one machine share a GPU.

#include <vector>

namespace plumb { inline namespace executor {

/// The way in which ranks share a GPU.
struct CudaSharing {
  bool parts = true;        ///< each rank has SMs of its own (a green context), where the driver allows it
  std::vector<int> shares;  ///< [rank] shares of the SMs, relative to one another; empty: even
  bool graph = false;       ///< a replay is captured as a CUDA graph, and launched from the second on
};

}}  // namespace plumb::executor

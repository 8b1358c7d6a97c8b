#include "traces/memory_kind.h"

namespace plumb {
namespace {

constexpr std::array<std::string_view, kMemoryKindCount> kNames = {"parameters",      "gradients", "optimizer",
                                                                   "weight versions", "unsharded", "activations",
                                                                   "recompute",       "workspace", "communication"};

}  // namespace

std::string_view memory_kind_name(MemoryKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace plumb

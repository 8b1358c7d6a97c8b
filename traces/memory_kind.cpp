#include "traces/memory_kind.h"

namespace plumb { inline namespace traces {
namespace {

constexpr std::array<std::string_view, kMemoryKindCount> kMemoryKindNames = {
    "parameters",  "gradients", "optimizer", "weight versions", "unsharded",
    "activations", "recompute", "workspace", "communication"};

}  // namespace

std::string_view memory_kind_name(MemoryKind kind) {
  return kMemoryKindNames[static_cast<std::size_t>(kind)];
}

}}  // namespace plumb::traces

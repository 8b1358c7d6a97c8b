#include "executor/transport/point_to_point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumb { inline namespace executor {

std::string to_text(const CommunicatorGroup& group) {
  return fmt::format("{} (ranks {})", group.name, fmt::join(group.ranks, ", "));
}

std::string to_text(const MoveTag& tag) {
  std::string text(collective_name(tag.op));
  if (tag.op != CollectiveKind::kAllToAll && tag.op != CollectiveKind::kShift)
    text += fmt::format(" ({})", algorithm_name(tag.algorithm));
  if (tag.elements >= 0) text += fmt::format(" of {} values", tag.elements);
  if (tag.op == CollectiveKind::kBroadcast || tag.op == CollectiveKind::kScatter)
    text += fmt::format(" from member {}", tag.root);
  if (tag.op == CollectiveKind::kGather || tag.op == CollectiveKind::kReduce)
    text += fmt::format(" to member {}", tag.root);
  return text;
}

}}  // namespace plumb::executor

#include "executor/transport/point_to_point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumb { inline namespace executor {

std::string to_text(const CommunicatorGroup& group) {
  return fmt::format("{} (ranks {})", group.name, fmt::join(group.ranks, ", "));
}

std::string to_text(const MoveTag& tag) {
  std::string text(collective_op_name(tag.op));
  if (tag.op != CollectiveOp::kAllToAll && tag.op != CollectiveOp::kShift)
    text += fmt::format(" ({})", algorithm_name(tag.algorithm));
  if (tag.elements >= 0) text += fmt::format(" of {} values", tag.elements);
  if (tag.op == CollectiveOp::kBroadcast || tag.op == CollectiveOp::kScatter)
    text += fmt::format(" from member {}", tag.root);
  if (tag.op == CollectiveOp::kGather || tag.op == CollectiveOp::kReduce)
    text += fmt::format(" to member {}", tag.root);
  return text;
}

}}  // namespace plumb::executor

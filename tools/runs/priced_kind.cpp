#include "tools/runs/priced_kind.h"

namespace plumb { inline namespace tools {

std::optional<CollectiveKind> priced_kind(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kAllReduce:
      return CollectiveKind::kAllReduce;
    case CollectiveOp::kAllGather:
      return CollectiveKind::kAllGather;
    case CollectiveOp::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case CollectiveOp::kAllToAll:
      return CollectiveKind::kAllToAll;
    case CollectiveOp::kBroadcast:
      return CollectiveKind::kBroadcast;
    default:
      return std::nullopt;
  }
}

}}  // namespace plumb::tools

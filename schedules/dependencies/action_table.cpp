#include "schedules/dependencies/action_table.h"

#include <algorithm>

namespace plumb { inline namespace schedules {

ActionTable::ActionTable(const Schedule& schedule)
    : stages_(static_cast<int>(schedule.stages.size())), microbatches_(schedule.microbatches) {
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      if (has_microbatch(action.op)) parts_ = std::max(parts_, action.part + 1);
    }
  }
  std::int32_t id = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      const std::int32_t here = id++;
      if (!has_microbatch(action.op) || action.stage < 0 || action.stage >= stages_ || action.microbatch < 0 ||
          action.microbatch >= microbatches_ || action.part < 0) {
        continue;
      }
      std::vector<std::int32_t>& slots = ids_[static_cast<std::size_t>(action.op)];
      if (slots.empty()) slots.assign(slot(stages_, 0, 0), kNone);
      std::int32_t& entry = slots[slot(action.stage, action.microbatch, action.part)];
      if (entry == kNone) entry = here;
    }
  }
}

}}  // namespace plumb::schedules

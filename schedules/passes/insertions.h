#pragma once
// Inserts actions into the lists of a schedule, by position.

#include <cstddef>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Puts `action` right before the action at `position` of a rank's list, or at the end if position is the list's
/// length.
struct Insertion {
  std::size_t position = 0;
  Action action;
};

/// Returns the list with the insertions; those of equal position keep their order.
std::vector<Action> with_insertions(const std::vector<Action>& actions, std::vector<Insertion> insertions);

/// Returns the position right behind the action at `position`, and behind its partner if the two are an overlapped
/// pair.
std::size_t position_behind(const std::vector<Action>& actions, std::size_t position);

/// Returns the position right before the action at `position`, and before its partner if the two are an overlapped
/// pair.
std::size_t position_before(const std::vector<Action>& actions, std::size_t position);

}}  // namespace plumb::schedules

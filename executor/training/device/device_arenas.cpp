#include "executor/training/device/device_arenas.h"

namespace plumb { inline namespace executor {

DeviceArenas::DeviceArenas(DeviceMachine& machine, const DeviceProgram& program, const DeviceWorld& world)
    : ranks_(program.arena_bytes.size()) {
  const auto is_here = [&](std::size_t rank, int lane) {
    return world.is_here(world.rank_of(static_cast<int>(rank), lane));
  };
  for (int lane = 0; lane < world.lanes(); ++lane)
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      arenas_.push_back(is_here(rank, lane) ? machine.allocate(program.arena_bytes[rank]) : nullptr);
  for (int lane = 0; lane < world.lanes(); ++lane)
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::int64_t bytes = program.host_bytes[rank];
      hosts_.push_back(bytes > 0 && is_here(rank, lane) ? machine.allocate_on_host(bytes) : nullptr);
    }
}

std::byte* DeviceArenas::address(ArenaPlace place, int lane) const {
  if (place.rank < 0) return nullptr;
  const std::size_t rank = static_cast<std::size_t>(lane) * ranks_ + static_cast<std::size_t>(place.rank);
  std::byte* const first = (place.on_host ? hosts_ : arenas_)[rank];
  return first == nullptr ? nullptr : first + place.offset;
}

}}  // namespace plumb::executor

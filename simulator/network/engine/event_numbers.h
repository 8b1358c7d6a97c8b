#pragma once
// The numbers that the times of the event engine depend on, in one row: derivatives are taken by these.
//
//   numbers_of(program, network)[numbering(program, network).latency + action]

#include <cstdint>
#include <vector>

#include "simulator/network/engine/event_program.h"

namespace plumb { inline namespace simulator {

/// The places at which each kind begins. Programs and networks of equal structure have the same.
struct EventNumbering {
  std::int32_t alone = 0;       ///< [action] ps
  std::int32_t latency = 0;     ///< [action] ps
  std::int32_t rate = 0;        ///< [action] bytes/s
  std::int32_t inside = 0;      ///< [action] ps
  std::int32_t stretch = 0;     ///< [stretch] ps
  std::int32_t inner_rate = 0;  ///< [stretch * inner collectives + inner collective] bytes/s
  std::int32_t capacity = 0;    ///< [link] bytes/s
  std::int32_t count = 0;
};
EventNumbering numbering(const EventProgram& program, const NetworkSpec& network);

std::vector<double> numbers_of(const EventProgram& program, const NetworkSpec& network);

}}  // namespace plumb::simulator

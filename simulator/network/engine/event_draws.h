#pragma once
// One run with noise, as the event engine asks for it: by instance.

#include <cstdint>
#include <vector>

#include "simulator/network/engine/event_program.h"
#include "simulator/noise/noise_draws.h"

namespace plumb { inline namespace simulator {

class EventDraws {
 public:
  /// [replica of the network] the replica that it draws as: a tensor group draws as one. All outlive it but the last.
  EventDraws(const NoiseDraws& draws, const Schedule& lowered, const EventProgram& program, std::vector<int> drawn_as);

  /// Of what an instance computes.
  double compute(std::int32_t instance) const;
  /// Of a message, a collective by itself or a move.
  double transfer(std::int32_t instance) const;
  /// Of a collective inside an action, which the instance is the first to run; `stretch` is its number.
  double inside(std::int32_t instance, std::int32_t stretch) const;

 private:
  int replica_of(std::int32_t instance) const { return drawn_as_[plumb::replica_of(program_, instance)]; }

  const NoiseDraws& draws_;
  const EventProgram& program_;
  std::vector<int> drawn_as_;
  std::vector<std::int64_t> collective_;  ///< [action] of a collective, the number of its draw
};

}}  // namespace plumb::simulator

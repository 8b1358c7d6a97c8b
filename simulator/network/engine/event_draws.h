#pragma once
// The factors of one run with noise by instance, as the event engine asks for them.

#include <cstdint>
#include <vector>

#include "simulator/network/engine/event_program.h"
#include "simulator/noise/noise_draws.h"

namespace plumb { inline namespace simulator {

class EventDraws {
 public:
  /// `drawn_as` is [replica of the network] the replica that it draws as: a tensor group draws as one. The other
  /// arguments must outlive it.
  EventDraws(const NoiseDraws& draws, const Schedule& lowered, const EventProgram& program, std::vector<int> drawn_as);

  /// Returns the factor of an instance's computing.
  double compute(std::int32_t instance) const;
  /// Returns the factor of a message, a collective by itself or a move.
  double transfer(std::int32_t instance) const;
  /// Returns the factor of a collective inside an action, which the instance is the first to run; `stretch` is its
  /// number.
  double inside(std::int32_t instance, std::int32_t stretch) const;

 private:
  int replica_of(std::int32_t instance) const { return drawn_as_[plumb::replica_of(program_, instance)]; }

  const NoiseDraws& draws_;
  const EventProgram& program_;
  std::vector<int> drawn_as_;
  std::vector<std::int64_t> collective_;  ///< [action] for a collective, the number of its draw
};

}}  // namespace plumb::simulator

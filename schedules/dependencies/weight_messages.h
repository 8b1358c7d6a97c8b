#pragma once
// Weights that travel (Lin et al. 2025, WeiPipe; Wu & Chen 2025, TawPipe): a rank runs whole micro-batches, and the
// weights of a model part come to it from a copy of the stage and go on to another. Their gradients travel likewise,
// and each copy adds its own. The copy that lists the OPTIMIZER_STEP owns the part; the others hold its weights from
// RECV_WEIGHTS to RESHARD.
//
//   0F0 0SEND_WEIGHTS1 ...                      stage 0 owns the part
//   1RECV_WEIGHTS0 1F1 1B1 1SEND_WGRAD0 1RESHARD  stage 1 is a copy of it on another rank

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// The messages of weights and of their gradients, by action id (schedules/dependencies/dependencies.h).
struct WeightMessages {
  /// [action id] the other end of a message, -1 for other actions and for one that nobody answers: the k-th SEND from one
  /// stage to another meets the k-th RECV there. Empty where no weights travel.
  std::vector<std::int32_t> partner;
  std::vector<std::int32_t> first_awaited;  ///< [action id] index in `awaited`, and one more at the end
  std::vector<std::int32_t> awaited;        ///< ids of SENDs

  bool any() const { return !partner.empty(); }

  /// Returns the SENDs whose delivery an action waits for. F, B, I, W, R and SEND_WEIGHTS wait for the first RECV_WEIGHTS
  /// of their stage since its last RESHARD: further ones bring the same weights. SEND_WGRAD and OPTIMIZER_STEP wait for
  /// the gradients that their stage has received since its last SEND_WGRAD or OPTIMIZER_STEP. RESHARD waits for all
  /// messages of the stage's weights since the last one.
  std::span<const std::int32_t> awaited_by(std::int32_t id) const {
    if (!any()) return {};
    const auto first = static_cast<std::size_t>(first_awaited[static_cast<std::size_t>(id)]);
    const auto last = static_cast<std::size_t>(first_awaited[static_cast<std::size_t>(id) + 1]);
    return {awaited.data() + first, last - first};
  }
};
WeightMessages weight_messages(const Schedule& schedule);

/// True if a schedule lists messages of weights or of their gradients.
bool weights_travel(const Schedule& schedule);

/// Returns [stage] true where the rank keeps the stage's weights, gradients and optimizer state: everywhere, unless
/// weights travel; then it is where an OPTIMIZER_STEP of the stage is listed.
std::vector<bool> stages_with_state(const Schedule& schedule);

}}  // namespace plumb::schedules

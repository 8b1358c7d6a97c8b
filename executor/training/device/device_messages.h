#pragma once
// Messages between stages as a run records them. Between meshes of one shape a message is one piece a rank; between
// meshes of different shape it falls into pieces (executor/spec/division/resharding_pieces.h), and the receiver's tensor
// ranks give each other the parts that they were not sent.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/groups/communicator_numbers.h"
#include "executor/groups/device_exchange.h"
#include "executor/program/calls/placed_calls.h"
#include "executor/spec/division/resharding_pieces.h"
#include "executor/training/device/device_stages.h"
#include "executor/training/device/device_world.h"
#include "executor/training/training_plan.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

struct DeviceMessage {
  MessageKind kind = MessageKind::kActivation;
  int from = 0, to = 0;    ///< pipeline ranks
  std::int64_t words = 0;  ///< words of 4 bytes that reach a rank
};

struct MessagePiece {
  int source = 0, destination = 0;  ///< ranks of the world
  std::int64_t from = 0, to = 0;    ///< its first word in what either end has
  std::int64_t words = 0;
};

class DeviceMessages {
 public:
  /// All three outlive it.
  DeviceMessages(const TrainingPlan& training, const DeviceWorld& world, const DeviceStages& stages);

  DeviceMessage message_of(const PlacedAction& send) const;

  /// Returns the pieces in one order on all ranks; between any two ranks there is one at most.
  std::vector<MessagePiece> pieces(const DeviceMessage& message) const;

  /// Returns the exchange of a stage's tensor ranks before they take a message, if they have one. seat: in the tensor
  /// group. incoming: where the message is.
  std::optional<DeviceExchange> completion(const PlacedAction& taker, const CommunicatorSeat& seat,
                                           std::byte* incoming) const;

 private:
  std::int64_t incoming_words(int stage, int slice, bool forward) const;
  MeshTensor mesh_tensor(int pipeline) const;

  const TrainingPlan& training_;
  const DeviceWorld& world_;
  const DeviceStages& stages_;
};

}}  // namespace plumb::executor

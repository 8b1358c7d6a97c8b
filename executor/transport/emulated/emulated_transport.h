#pragma once
// A transport over emulated links. Real bytes move by another transport, and each message is held until its emulated
// link would have delivered it (emulated_link.h). It is for ranks of one process, since both ends of a link share its
// state.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/transport/emulated/emulated_link.h"
#include "executor/transport/emulated/sleeper.h"
#include "executor/transport/transport.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

struct EmulatedNetwork {
  std::function<LinkCost(int source, int destination)> link;  ///< returns the link between two world ranks
  std::int64_t burst_bytes = 0;    ///< above 0: all messages of a rank leave by one card, a token bucket of that size
  Sends sends = Sends::kBuffered;  ///< rendezvous: a message begins to move when its receive is posted too
};

class EmulatedTransport : public Transport {
 public:
  /// `inner` and `sleeper` must outlive the object. The times that it hands out count from the sleeper's origin. Each
  /// channel, and each pair of members of a group, has a link of its own, unless a burst gives each rank one card for
  /// all.
  EmulatedTransport(Transport& inner, EmulatedNetwork network, const Sleeper& sleeper);
  ~EmulatedTransport() override;

  TicketPtr send(const TransportChannel& channel, const MessageTag& tag, Tensor payload) override;
  TicketPtr receive(const TransportChannel& channel, const MessageTag& tag, Tensor destination) override;
  Received wait_received(const TicketPtr& receive) override;
  TransferTimes wait_sent(const TicketPtr& send) override;
  std::unique_ptr<PointToPoint> connect(const CommunicatorGroup& group, int member) override;
  Tensor copy_to(int rank, const Tensor& tensor) override { return inner_.copy_to(rank, tensor); }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 private:
  struct End;
  class Wire;
  class Lines;
  using WireKey = std::pair<std::string, std::pair<int, int>>;  // name of the channel or the group; the two ranks

  struct Card;
  Wire& wire(const std::string& name, int source, int destination);

  Transport& inner_;
  const EmulatedNetwork network_;
  const Sleeper& sleeper_;
  std::mutex mutex_;  // guards wires_ and cards_
  std::map<WireKey, std::unique_ptr<Wire>> wires_;
  std::map<int, std::shared_ptr<Card>> cards_;  // [source rank]
};

}}  // namespace plumb::executor

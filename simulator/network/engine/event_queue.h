#pragma once
// The events of the event-driven engine in order of time. Events of one moment keep the order in which they were put.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedules/time.h"
#include "simulator/network/flow/derivative_tape.h"

namespace plumb { inline namespace simulator {

enum class Happening : std::uint8_t {
  kEnd,
  kDelivery,
  kBucket,   ///< the bucket of a REDUCE_GRAD is complete
  kStretch,  ///< a collective inside an action that blocks it is over
  kBeside,   ///< a collective inside an action that runs beside its compute is over
};

struct Event {
  SimTime time{0};
  std::int64_t order = 0;
  std::int32_t instance = 0;  ///< replica * actions + action
  std::uint32_t version = 0;  ///< of compute that may be slowed down, or of a bucket in it
  Happening happening = Happening::kEnd;
  DerivativeTape::Node node = DerivativeTape::kConstant;  ///< its moment, where derivatives are recorded
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& front() const { return heap_.front(); }

  void put(SimTime time, std::int32_t instance, Happening happening, std::uint32_t version = 0,
           DerivativeTape::Node node = DerivativeTape::kConstant) {
    heap_.push_back({time, next_order_++, instance, version, happening, node});
    std::ranges::push_heap(heap_, later);
  }

  Event take() {
    const Event event = heap_.front();
    std::ranges::pop_heap(heap_, later);
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& a, const Event& b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }

  std::vector<Event> heap_;
  std::int64_t next_order_ = 0;
};

}}  // namespace plumb::simulator

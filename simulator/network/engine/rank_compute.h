#pragma once
// Each rank of each replica computes at the rank's speed, and is slowed down while a collective of its own is under
// way.

#include <cstdint>
#include <vector>

#include "simulator/network/engine/event_program.h"
#include "simulator/network/engine/event_queue.h"

namespace plumb { inline namespace simulator {

/// Computing that takes `work` at normal speed, multiplied by a random factor.
struct ComputeWork {
  SimTime work{0};
  std::int32_t number = 0;  ///< number of `work` (simulator/network/engine/event_numbers.h)
  double factor = 1;
};

class RankCompute {
 public:
  /// Puts coming events into `events`, with their moments if there is a tape. The arguments must outlive it.
  RankCompute(const EventProgram& program, const NetworkSpec& network, int ranks, EventQueue& events,
              DerivativeTape* tape = nullptr);

  /// Makes the rank of `instance` compute `work` from `now` on, which is the tape's moment; `buckets` are complete
  /// inside it at their offsets. False if it is over at once; otherwise its kEnd comes.
  bool begin(std::int32_t instance, const ComputeWork& work, const std::vector<std::int32_t>& buckets, SimTime now);

  /// Must be called when the instance's kEnd has come.
  void end(std::int32_t instance);

  /// Must be called when the bucket of that REDUCE_GRAD is complete.
  void complete(std::int32_t reduction);

  /// A collective begins (1) or ends (-1) on the rank of `instance`, whose computing goes on at another speed.
  void change_collectives(std::int32_t instance, int change, SimTime now);

  /// True for the kEnd or kBucket of compute that has since changed its speed.
  bool is_outdated(const Event& event) const;

 private:
  struct Rank {
    std::int32_t running = -1;  ///< instance
    std::uint32_t version = 0;
    std::int32_t collectives = 0;       ///< collectives under way
    double work_ps = 0;                 ///< of `running`
    double work_left_ps = 0;            ///< at `since`
    std::vector<std::int32_t> buckets;  ///< REDUCE_GRADs inside `running` whose bucket is not complete
    SimTime since{0};
    std::int32_t number = 0;  ///< number of the work
    double factor = 1;
    DerivativeTape::Node work_node = DerivativeTape::kConstant;
    DerivativeTape::Node since_node = DerivativeTape::kConstant;
  };

  std::size_t rank_of(std::int32_t instance) const;
  double speed_of(std::int32_t instance) const;
  SimTime at_speed(std::int32_t instance, SimTime work) const;
  SimTime offset_of(std::int32_t reduction, double factor) const;
  std::int32_t number_of_offset(std::int32_t reduction) const;
  double speed_now(const Rank& rank) const;
  void schedule(Rank& rank, SimTime now);

  const EventProgram& program_;
  const NetworkSpec& network_;
  std::size_t ranks_of_replica_;
  EventQueue& events_;
  DerivativeTape* tape_;
  std::int32_t first_offset_;  ///< number of the first offset
  std::vector<Rank> ranks_;    ///< [replica * ranks + rank]
};

}}  // namespace plumb::simulator

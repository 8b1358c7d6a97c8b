#pragma once
// The ranks that mpirun or srun has started, one process each: this process's rank, and the steps that all of them take
// together before and after a replay.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

class MpiWorld {
 public:
  /// Returns the world, which exists from the first call to the end of the process, since MPI begins once. Throws
  /// RunError if MPI does not let several threads take turns.
  static MpiWorld& joined();

  /// Waits for the others and leaves MPI.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Throws SpecError on all ranks if there are not `needed` of them, or if they have different fingerprints. From then
  /// on a rank that waits here for the others longer than `patience` throws RunError.
  void require_team(int needed, std::uint64_t fingerprint, Seconds patience);

  /// Returns [rank] the bytes of each rank on rank 0, and nothing elsewhere. All ranks must call gather(), exchange()
  /// and common_moment_ns() together.
  std::vector<std::string> gather(const std::string& bytes);

  /// Returns [rank] the bytes of each rank, on all ranks.
  std::vector<std::string> exchange(const std::string& bytes);

  /// Sends a text to all others without waiting for them.
  void call_out(const std::string& text) const;
  /// A text that another rank has called out, and that rank.
  struct Heard {
    int rank = 0;
    std::string text;
  };
  /// Returns a text that another rank has called out and that was not heard yet; nothing if there is none.
  std::optional<Heard> hear() const;

  /// Sets how long this rank waits here for the others from now on.
  void wait_at_most(Seconds patience) { patience_ = patience; }

  /// Returns this machine's CLOCK_MONOTONIC at one moment that all ranks have in common. On the machine of rank 0 it is
  /// exact. Elsewhere the offset of the clocks is taken from the quickest of 200 round trips, and is right to half of
  /// its time. A container with a time namespace has a clock of its own too.
  std::int64_t common_moment_ns();

  /// Ends all processes with that exit status. The caller has printed all messages before.
  [[noreturn]] static void stop_all(int status);

 private:
  MpiWorld();

  /// Returns when all ranks have come. Sleeps instead of spinning, since the others may need the core.
  void meet(std::optional<Seconds> patience) const;

  int rank_ = 0;
  int size_ = 1;
  Seconds patience_{60};
};

}}  // namespace plumb::executor

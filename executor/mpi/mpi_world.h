#pragma once
// The ranks that mpirun or srun has started, a process each: who this is, and what all of them do together before and
// after a replay.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

class MpiWorld {
 public:
  /// From the first call to the end of the process: MPI begins once. Throws RunError if MPI does not let several
  /// threads take turns.
  static MpiWorld& joined();

  /// Waits for the others, and leaves.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Throws SpecError on all ranks if there are not `needed` of them, or if they have different fingerprints. From then
  /// on, who waits here for the others longer than `patience` throws RunError.
  void require_team(int needed, std::uint64_t fingerprint, Seconds patience);

  /// [rank] each one's bytes, on rank 0; empty elsewhere. Called by all, as what follows.
  std::vector<std::string> gather(const std::string& bytes);

  /// [rank] each one's bytes, on all ranks.
  std::vector<std::string> exchange(const std::string& bytes);

  /// Lets all others hear it, without waiting for them.
  void call_out(const std::string& text) const;
  /// What another has called out, and who; nothing if none has since one last heard of any.
  struct Heard {
    int rank = 0;
    std::string text;
  };
  std::optional<Heard> hear() const;

  /// How long one waits here for the others from now on.
  void wait_at_most(Seconds patience) { patience_ = patience; }

  /// This machine's CLOCK_MONOTONIC at one moment that all ranks have in common. On the machine of rank 0 it is exact;
  /// elsewhere the offset of the clocks is taken from the quickest of 200 round trips, and right to half of its time. A
  /// container with a time namespace has a clock of its own too.
  std::int64_t common_moment_ns();

  /// Ends all processes with that exit status. What is to be said has been said.
  [[noreturn]] static void stop_all(int status);

 private:
  MpiWorld();

  /// Returns when all have come. Sleeps instead of spinning: the others may need the core.
  void meet(std::optional<Seconds> patience) const;

  int rank_ = 0;
  int size_ = 1;
  Seconds patience_{60};
};

}}  // namespace plumb::executor

#pragma once
// The ranks that mpirun or srun has started, a process each: who this is, and what all of them do together before and
// after a replay.

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

class MpiWorld {
 public:
  /// Joins the others. One at a time. Throws RunError if MPI does not let several threads take turns.
  MpiWorld();

  /// Waits for the others, and leaves.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// [rank] each one's bytes, on rank 0; empty elsewhere. Called by all, as what follows.
  std::vector<std::string> gather(const std::string& bytes);

  /// Whether all have the same value.
  bool agree_on(std::uint64_t value);

  /// This machine's CLOCK_MONOTONIC at one moment that all ranks have in common. On the machine of rank 0 it is exact;
  /// elsewhere the offset of the clocks is taken from the quickest of 200 round trips, and right to half of its time.
  std::int64_t common_moment_ns();

  /// Ends all processes with that exit status. What is to be said has been said.
  [[noreturn]] static void stop_all(int status);

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace plumb

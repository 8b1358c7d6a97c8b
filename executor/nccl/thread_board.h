#pragma once
// A board for ranks that are threads of one process: they meet in memory.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/nccl/rank_board.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

class ThreadMeeting {
 public:
  /// A rank that waits longer than `patience` for the others is told which rank is missing.
  ThreadMeeting(int ranks, Seconds patience);

  /// Returns the board of a rank. The meeting outlives it.
  std::unique_ptr<RankBoard> board(int rank);

 private:
  class Board;

  std::string exchange(std::size_t rank, const std::string& own, std::vector<std::string>& all);

  const Seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> brought_, last_;  // [rank] texts of this round, and of the one before
  std::vector<bool> has_brought_;            // [rank]
  std::size_t rounds_ = 0;
  std::string fault_;
  int faulty_ = -1;
};

}}  // namespace plumb::executor

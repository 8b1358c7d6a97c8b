#pragma once
// A board for ranks that are threads of one test: they meet in memory.

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "executor/transport/nccl/rank_board.h"
#include "schedules/time.h"

namespace plumb::test {

class ThreadMeeting {
 public:
  /// A rank that waits longer than `patience` for the others is told which rank is missing.
  ThreadMeeting(int ranks, Seconds patience)
      : patience_(patience),
        brought_(static_cast<std::size_t>(ranks)),
        last_(brought_.size()),
        has_brought_(brought_.size(), false) {}

  /// Returns the board of a rank. The meeting outlives it.
  std::unique_ptr<RankBoard> board(int rank) { return std::make_unique<Board>(*this, rank); }

 private:
  class Board : public RankBoard {
   public:
    Board(ThreadMeeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

    int rank() const override { return rank_; }
    int ranks() const override { return static_cast<int>(meeting_.brought_.size()); }
    std::string exchange(const std::string& own, std::vector<std::string>& all) override {
      return meeting_.exchange(static_cast<std::size_t>(rank_), own, all);
    }
    bool tell(const std::string& fault) override {
      {
        const std::lock_guard lock(meeting_.mutex_);
        if (meeting_.faulty_ >= 0) return meeting_.faulty_ == rank_;
        meeting_.fault_ = fault;
        meeting_.faulty_ = rank_;
      }
      meeting_.changed_.notify_all();
      return true;
    }
    std::string told() override {
      const std::lock_guard lock(meeting_.mutex_);
      return meeting_.faulty_ == rank_ ? "" : meeting_.fault_;
    }

   private:
    ThreadMeeting& meeting_;
    const int rank_;
  };

  std::string exchange(std::size_t rank, const std::string& own, std::vector<std::string>& all) {
    std::unique_lock lock(mutex_);
    const std::size_t round = rounds_;
    brought_[rank] = own;
    has_brought_[rank] = true;
    if (std::ranges::all_of(has_brought_, [](bool has) { return has; })) {
      last_ = brought_;
      has_brought_.assign(has_brought_.size(), false);
      ++rounds_;
      changed_.notify_all();
    }
    const bool in_time =
        changed_.wait_for(lock, patience_, [&] { return rounds_ > round || (faulty_ >= 0 && rounds_ == round); });
    if (rounds_ > round) {
      all = last_;
      return {};
    }
    if (in_time) return fault_;
    const auto missing = std::ranges::find(has_brought_, false) - has_brought_.begin();
    return fmt::format("rank {}, outside its actions, waited for rank {}, and for {:g} s nothing came", rank, missing,
                       patience_.count());
  }

  const Seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> brought_, last_;  // [rank] texts of this round, and of the one before
  std::vector<bool> has_brought_;            // [rank]
  std::size_t rounds_ = 0;
  std::string fault_;
  int faulty_ = -1;
};

}  // namespace plumb::test

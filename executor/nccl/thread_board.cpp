#include "executor/nccl/thread_board.h"

#include <algorithm>

#include <fmt/format.h>

namespace plumb { inline namespace executor {

class ThreadMeeting::Board : public RankBoard {
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

ThreadMeeting::ThreadMeeting(int ranks, Seconds patience)
    : patience_(patience),
      brought_(static_cast<std::size_t>(ranks)),
      last_(brought_.size()),
      has_brought_(brought_.size(), false) {}

std::unique_ptr<RankBoard> ThreadMeeting::board(int rank) {
  return std::make_unique<Board>(*this, rank);
}

std::string ThreadMeeting::exchange(std::size_t rank, const std::string& own, std::vector<std::string>& all) {
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

}}  // namespace plumb::executor

#pragma once
// A rank with two chunks, each of which takes its micro-batches in ascending order. A schedule that is written as steps
// ("three forwards of chunk 0, then a backward of chunk 1") says chunk and operation only.

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {

class ChunkCursors {
 public:
  struct Chunk {
    int stage = 0;
    int first_microbatch = 0;
  };
  ChunkCursors(const Chunk& chunk0, const Chunk& chunk1) : chunks_{chunk0, chunk1} {}

  int forwards(int chunk) const { return forwards_[chunk]; }

  void forward(int chunk) { add(Op::kForward, chunk, forwards_[chunk]++); }
  void backward(int chunk) { add(Op::kBackward, chunk, backwards_[chunk]++); }
  void input_grad(int chunk) {
    pending_.push_back({.chunk = chunk, .index = backwards_[chunk]});
    add(Op::kInputGrad, chunk, backwards_[chunk]++);
  }
  /// Adds the W of the oldest input gradient whose W has not run. The second form takes the oldest one of `chunk`.
  void weight_grad() { weight_grad_at(0); }
  void weight_grad(int chunk) {
    std::size_t at = 0;
    while (pending_[at].chunk != chunk) ++at;
    weight_grad_at(at);
  }
  int pending(int chunk) const { return static_cast<int>(std::ranges::count(pending_, chunk, &Pending::chunk)); }
  /// Overlaps the newest action with the one that is added next.
  void pair_with_next() { actions_.back().overlaps_next = true; }
  /// Adds a forward and a whole backward, overlapped.
  void overlapped(int forward_chunk, int backward_chunk) {
    forward(forward_chunk);
    pair_with_next();
    backward(backward_chunk);
  }

  std::vector<Action> take() { return std::move(actions_); }

 private:
  struct Pending {
    int chunk = 0;
    int index = 0;
  };

  void add(Op op, int chunk, int index) {
    actions_.push_back(compute_action(op, chunks_[chunk].stage, chunks_[chunk].first_microbatch + index));
  }
  void weight_grad_at(std::size_t at) {
    const Pending next = pending_[at];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(at));
    add(Op::kWeightGrad, next.chunk, next.index);
  }

  std::array<Chunk, 2> chunks_;
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
  std::deque<Pending> pending_;
  std::vector<Action> actions_;
};

}}  // namespace plumb::schedules

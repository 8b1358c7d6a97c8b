#pragma once
// One head of one sequence of a state space on a GPU, as the lanes of a block compute it (state_space.h).

#include "kernels/cpu/state_spaces/state_space.h"
#include "kernels/layer/state_space_scratch.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Returns log(1 + e^x), exact to rounding for small e^x too (Goldberg 1991, theorem 4).
PLUMB_SIMT float softplus(float x) {
  constexpr float kLarge = 20;  // where log(1 + e^x) is x in fp32
  if (x > kLarge) return x;
  const float power = expf(x), sum = 1.0F + power;
  return sum == 1.0F ? power : logf(sum) * power / (sum - 1.0F);
}

PLUMB_SIMT StateSpaceScratch scratch_of(const StateSpaceSize& size, bool is_backward) {
  return state_space_scratch(size.sequence, size.head_size, size.state_size, size.chunk, is_backward);
}

/// The scratch of one head of one sequence.
struct HeadScratch {
  float *step, *decay, *mask, *states, *ddecay, *dscores, *of_decays, *scaled, *through_state, *from_state, *dstate,
      *db, *dc, *sums;

  /// `item` counts heads, sequence by sequence. all: [b, H, StateSpaceScratch::elements]
  PLUMB_SIMT HeadScratch(float* all, std::int64_t item, const StateSpaceScratch& at) {
    float* const begin = all + item * at.elements;
    step = begin + at.step, decay = begin + at.decay, mask = begin + at.mask, states = begin + at.states;
    ddecay = begin + at.ddecay, dscores = begin + at.dscores, of_decays = begin + at.of_decays;
    scaled = begin + at.scaled, through_state = begin + at.through_state, from_state = begin + at.from_state;
    dstate = begin + at.dstate, db = begin + at.db, dc = begin + at.dc, sums = begin + at.sums;
  }
};

/// One head of one sequence, as the lanes of a block see it.
template <class S, class Thread>
class HeadOfStates {
 public:
  /// `item` counts heads, sequence by sequence.
  PLUMB_SIMT HeadOfStates(const Thread& thread, std::int64_t item, const S* xbc, const S* steps,
                          const StateSpaceParameters& parameters, const StateSpaceSize& size, float* scratch,
                          bool is_backward)
      : thread_(thread), size_(size), memory_(scratch, item, scratch_of(size, is_backward)), head_(item % size.heads) {
    row_ = item / size.heads * size.sequence;
    const std::int64_t group = head_ / (size.heads / size.groups);
    x_ = xbc + row_ * size.row_width() + head_ * size.head_size;
    b_ = xbc + row_ * size.row_width() + size.inner() + group * size.state_size;
    c_ = b_ + size.groups * size.state_size;
    steps_ = steps + row_ * size.step_stride + head_;
    rate_ = -expf(parameters.decay_log[head_]);
    bias_ = parameters.step_bias[head_];
    side_ = size.chunk < size.sequence ? size.chunk : size.sequence;
  }

  PLUMB_SIMT const HeadScratch& memory() const { return memory_; }
  PLUMB_SIMT std::int64_t head() const { return head_; }
  PLUMB_SIMT std::int64_t row() const { return row_; }
  PLUMB_SIMT std::int64_t side() const { return side_; }
  PLUMB_SIMT std::int64_t chunks() const { return (size_.sequence + side_ - 1) / side_; }
  PLUMB_SIMT std::int64_t tokens(std::int64_t chunk) const {
    const std::int64_t left = size_.sequence - chunk * side_;
    return left < side_ ? left : side_;
  }
  PLUMB_SIMT float rate() const { return rate_; }
  PLUMB_SIMT float raw_step(std::int64_t token) const { return widened(steps_[token * size_.step_stride]) + bias_; }
  PLUMB_SIMT float x(std::int64_t token, std::int64_t p) const { return widened(x_[token * size_.row_width() + p]); }
  PLUMB_SIMT float b(std::int64_t token, std::int64_t n) const { return widened(b_[token * size_.row_width() + n]); }
  PLUMB_SIMT float c(std::int64_t token, std::int64_t n) const { return widened(c_[token * size_.row_width() + n]); }

  /// Calls visit(i) for each of `count` elements on one of the lanes, and waits for all of them.
  template <class Visit>
  PLUMB_SIMT void divide(std::int64_t count, const Visit& visit) const {
    for (std::int64_t i = thread_.lane(); i < count; i += thread_.lanes()) visit(i);
    thread_.sync();
  }

  /// Computes a chunk's step sizes and decays.
  PLUMB_SIMT void take_steps(std::int64_t chunk) const {
    divide(tokens(chunk), [&](std::int64_t t) { memory_.step[t] = softplus(raw_step(chunk * side_ + t)); });
    if (thread_.lane() == 0) {
      float sum = 0;
      for (std::int64_t t = 0; t < tokens(chunk); ++t) memory_.decay[t] = sum += rate_ * memory_.step[t];
    }
    thread_.sync();
  }
  PLUMB_SIMT float decay_until_end(std::int64_t chunk, std::int64_t t) const {
    return expf(memory_.decay[tokens(chunk) - 1] - memory_.decay[t]);
  }
  PLUMB_SIMT float score(std::int64_t chunk, std::int64_t to, std::int64_t from) const {
    float sum = 0;
    for (std::int64_t n = 0; n < size_.state_size; ++n) sum += c(chunk * side_ + to, n) * b(chunk * side_ + from, n);
    return sum;
  }
  /// Writes the state behind a chunk from the one before it; both may be in the same place.
  PLUMB_SIMT void advance(float* behind, const float* before, std::int64_t chunk) const {
    const std::int64_t n = size_.state_size, count = tokens(chunk);
    divide(size_.head_size * n, [&](std::int64_t i) {
      float sum = expf(memory_.decay[count - 1]) * before[i];
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t token = chunk * side_ + t;
        sum += decay_until_end(chunk, t) * memory_.step[t] * x(token, i / n) * b(token, i % n);
      }
      behind[i] = sum;
    });
  }

 private:
  const Thread& thread_;
  const StateSpaceSize& size_;
  HeadScratch memory_;
  std::int64_t head_, row_ = 0, side_ = 1;  // row_: the sequence's first token
  const S *x_ = nullptr, *b_ = nullptr, *c_ = nullptr, *steps_ = nullptr;
  float rate_ = 0, bias_ = 0;
};

}}}  // namespace plumb::kernels::simt

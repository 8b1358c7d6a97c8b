#pragma once
// The state space of Mamba-2 on a GPU (kernels/cpu/state_spaces/state_space.h has the formulas), over whole sequences.
// A block takes a head of a sequence, chunk after chunk. Its lanes divide the elements of each product, which stand in
// fp32 in a scratch of the head's own. What the heads of a group, or the sequences, have in common is summed behind it.
// Symbols are those of that file; Q tokens of a chunk.

#include "kernels/cpu/state_spaces/state_space.h"
#include "kernels/layer/state_space_scratch.h"
#include "kernels/simt/activation.h"
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

/// y: [T, H*P]; xbc: [T, H*P + 2*G*N]; steps: [T, step_stride]; scratch: [b, H, StateSpaceScratch::elements]
template <class S>
struct StateSpaceForward {
  S* y;
  const S* xbc;
  const S* steps;
  float* scratch;
  StateSpaceParameters parameters;
  StateSpaceSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t item = thread.block(); item < size.batch * size.heads; item += thread.blocks()) {
      const HeadOfStates<S, Thread> head(thread, item, xbc, steps, parameters, size, scratch, false);
      head.divide(size.head_size * size.state_size, [&](std::int64_t i) { head.memory().states[i] = 0; });
      for (std::int64_t chunk = 0; chunk < head.chunks(); ++chunk) {
        head.take_steps(chunk);
        multiply(head, chunk);
        head.advance(head.memory().states, head.memory().states, chunk);
      }
    }
  }

 private:
  template <class Head>
  PLUMB_SIMT void multiply(const Head& head, std::int64_t chunk) const {
    const HeadScratch& memory = head.memory();
    const std::int64_t count = head.tokens(chunk), side = head.side(), width = size.head_size, n = size.state_size;
    head.divide(count * count, [&](std::int64_t i) {
      const std::int64_t to = i / count, from = i % count;
      if (from <= to)
        memory.mask[to * side + from] = head.score(chunk, to, from) * expf(memory.decay[to] - memory.decay[from]);
    });
    head.divide(count * width, [&](std::int64_t i) {
      const std::int64_t t = i / width, p = i % width, token = chunk * side + t;
      float through = 0, inside = 0;
      for (std::int64_t e = 0; e < n; ++e) through += head.c(token, e) * memory.states[p * n + e];
      for (std::int64_t from = 0; from <= t; ++from)
        inside += memory.mask[t * side + from] * memory.step[from] * head.x(chunk * side + from, p);
      store(y[(head.row() + token) * size.inner() + head.head() * width + p],
            inside + expf(memory.decay[t]) * through + parameters.skip[head.head()] * head.x(token, p));
    });
  }
};

/// Replaces x and steps by their gradients. Those of B, C and the parameters stand in the scratch, by head. dy: [T, H*P]
template <class S>
struct StateSpaceBackward {
  S* xbc;
  S* steps;
  float* scratch;
  const S* dy;
  StateSpaceParameters parameters;
  StateSpaceSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t elements = size.head_size * size.state_size;
    for (std::int64_t item = thread.block(); item < size.batch * size.heads; item += thread.blocks()) {
      const HeadOfStates<S, Thread> head(thread, item, xbc, steps, parameters, size, scratch, true);
      const HeadScratch& memory = head.memory();
      head.divide(elements, [&](std::int64_t i) { memory.states[i] = memory.dstate[i] = 0; });
      head.divide(3, [&](std::int64_t i) { memory.sums[i] = 0; });
      for (std::int64_t chunk = 0; chunk + 1 < head.chunks(); ++chunk) {
        head.take_steps(chunk);
        head.advance(memory.states + (chunk + 1) * elements, memory.states + chunk * elements, chunk);
      }
      for (std::int64_t chunk = head.chunks() - 1; chunk >= 0; --chunk) {
        head.take_steps(chunk);
        inside_chunk(head, chunk);
        through_states(head, chunk);
        sum_decays(thread, head, chunk);
        take_gradients(thread, head, chunk);
      }
    }
  }

 private:
  template <class Head>
  PLUMB_SIMT float dout(const Head& head, std::int64_t token, std::int64_t p) const {
    return widened(dy[(head.row() + token) * size.inner() + head.head() * size.head_size + p]);
  }

  /// Gradients of the scores between a chunk's tokens, and of the decays between them.
  template <class Head>
  PLUMB_SIMT void inside_chunk(const Head& head, std::int64_t chunk) const {
    const HeadScratch& memory = head.memory();
    const std::int64_t count = head.tokens(chunk), side = head.side(), first = chunk * side;
    head.divide(count * count, [&](std::int64_t i) {
      const std::int64_t to = i / count, from = i % count;
      if (from > to) return;
      float dmask = 0;
      for (std::int64_t p = 0; p < size.head_size; ++p) dmask += dout(head, first + to, p) * head.x(first + from, p);
      dmask *= memory.step[from];
      const float decay = expf(memory.decay[to] - memory.decay[from]), score = head.score(chunk, to, from);
      memory.mask[to * side + from] = score * decay;
      memory.dscores[to * side + from] = dmask * decay;
      memory.of_decays[to * side + from] = dmask * score * decay;
    });
  }

  /// Gradients of step x, B and C, and of the state before the chunk from that of the state behind it.
  template <class Head>
  PLUMB_SIMT void through_states(const Head& head, std::int64_t chunk) const {
    const HeadScratch& memory = head.memory();
    const std::int64_t count = head.tokens(chunk), side = head.side(), first = chunk * side;
    const std::int64_t width = size.head_size, n = size.state_size;
    const float* const state = memory.states + chunk * width * n;
    head.divide(count * width, [&](std::int64_t i) {
      const std::int64_t t = i / width, p = i % width;
      float through = 0, from_state = 0, inside = 0;
      for (std::int64_t e = 0; e < n; ++e) {
        through += head.b(first + t, e) * memory.dstate[p * n + e];
        from_state += head.c(first + t, e) * state[p * n + e];
      }
      for (std::int64_t to = t; to < count; ++to) inside += memory.mask[to * side + t] * dout(head, first + to, p);
      memory.through_state[i] = head.decay_until_end(chunk, t) * through;
      memory.from_state[i] = expf(memory.decay[t]) * from_state;
      memory.scaled[i] = inside + memory.through_state[i];
    });
    head.divide(count * n, [&](std::int64_t i) {
      const std::int64_t t = i / n, e = i % n;
      float into_state = 0, of_state = 0, of_b = 0, of_c = 0;
      for (std::int64_t p = 0; p < width; ++p) {
        into_state += head.x(first + t, p) * memory.dstate[p * n + e];
        of_state += dout(head, first + t, p) * state[p * n + e];
      }
      for (std::int64_t to = t; to < count; ++to) of_b += memory.dscores[to * side + t] * head.c(first + to, e);
      for (std::int64_t from = 0; from <= t; ++from) of_c += memory.dscores[t * side + from] * head.b(first + from, e);
      memory.db[(first + t) * n + e] = of_b + head.decay_until_end(chunk, t) * memory.step[t] * into_state;
      memory.dc[(first + t) * n + e] = of_c + expf(memory.decay[t]) * of_state;
    });
  }

  /// Gradients of the decays' logarithms, and then of the state before the chunk.
  template <class Thread, class Head>
  PLUMB_SIMT void sum_decays(const Thread& thread, const Head& head, std::int64_t chunk) const {
    const HeadScratch& memory = head.memory();
    const std::int64_t count = head.tokens(chunk), side = head.side(), first = chunk * side;
    const std::int64_t width = size.head_size, n = size.state_size;
    const float* const state = memory.states + chunk * width * n;
    const float whole = expf(memory.decay[count - 1]);
    const float of_whole =
        sum_over_row(thread, width * n, [&](std::int64_t i) { return memory.dstate[i] * state[i]; }) * whole;
    const auto into_state = [&](std::int64_t t) {
      float sum = 0;
      for (std::int64_t p = 0; p < width; ++p)
        sum += memory.step[t] * head.x(first + t, p) * memory.through_state[t * width + p];
      return sum;
    };
    const float of_end = sum_over_row(thread, count, into_state);
    head.divide(count, [&](std::int64_t t) {
      float sum = t == count - 1 ? of_whole + of_end : 0.0F;
      sum -= into_state(t);
      for (std::int64_t p = 0; p < width; ++p) sum += dout(head, first + t, p) * memory.from_state[t * width + p];
      for (std::int64_t from = 0; from <= t; ++from) sum += memory.of_decays[t * side + from];
      for (std::int64_t to = t; to < count; ++to) sum -= memory.of_decays[to * side + t];
      memory.ddecay[t] = sum;
    });
    head.divide(width * n, [&](std::int64_t i) {
      float sum = whole * memory.dstate[i];
      for (std::int64_t t = 0; t < count; ++t)
        sum += expf(memory.decay[t]) * dout(head, first + t, i / n) * head.c(first + t, i % n);
      memory.dstate[i] = sum;
    });
    if (thread.lane() == 0)  // a token's decay takes part in those of all later ones of the chunk
      for (std::int64_t t = count - 2; t >= 0; --t) memory.ddecay[t] += memory.ddecay[t + 1];
    thread.sync();
  }

  /// Replaces a chunk's x and steps by their gradients, and adds to the head's sums.
  template <class Thread, class Head>
  PLUMB_SIMT void take_gradients(const Thread& thread, const Head& head, std::int64_t chunk) const {
    const HeadScratch& memory = head.memory();
    const std::int64_t count = head.tokens(chunk), first = chunk * head.side(), width = size.head_size;
    const float skip = parameters.skip[head.head()];
    const auto dstep = [&](std::int64_t t) {
      float sum = head.rate() * memory.ddecay[t];
      for (std::int64_t p = 0; p < width; ++p) sum += head.x(first + t, p) * memory.scaled[t * width + p];
      return sum * sigmoid(head.raw_step(first + t));
    };
    const float of_rate =
        sum_over_row(thread, count, [&](std::int64_t t) { return memory.step[t] * memory.ddecay[t]; });
    const float of_bias = sum_over_row(thread, count, dstep);
    const float of_skip = sum_over_row(thread, count * width, [&](std::int64_t i) {
      return head.x(first + i / width, i % width) * dout(head, first + i / width, i % width);
    });
    if (thread.lane() == 0) {
      memory.sums[0] += of_rate * head.rate();
      memory.sums[1] += of_bias;
      memory.sums[2] += of_skip;
    }
    head.divide(count, [&](std::int64_t t) {
      S* const raw = steps + (head.row() + first + t) * size.step_stride + head.head();
      const float gradient = dstep(t);
      S* const x = xbc + (head.row() + first + t) * size.row_width() + head.head() * width;
      for (std::int64_t p = 0; p < width; ++p)
        store(x[p], memory.step[t] * memory.scaled[t * width + p] + skip * dout(head, first + t, p));
      store(*raw, gradient);
    });
  }
};

/// Comes behind StateSpaceBackward: replaces B and C by the sums over their group's heads.
template <class S>
struct StateSpaceGroupSums {
  S* xbc;
  float* scratch;
  StateSpaceSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t n = size.state_size, both = 2 * size.groups * n, heads = size.heads / size.groups;
    const StateSpaceScratch at = scratch_of(size, true);
    for_each_element(thread, size.batch * size.sequence * both, [&](std::int64_t i) {
      const std::int64_t row = i / both, column = i % both, group = column % (size.groups * n) / n;
      const std::int64_t token = row % size.sequence, sequence = row / size.sequence;
      float sum = 0;
      for (std::int64_t head = group * heads; head < (group + 1) * heads; ++head) {
        const HeadScratch memory(scratch, sequence * size.heads + head, at);
        sum += (column < size.groups * n ? memory.db : memory.dc)[token * n + column % n];
      }
      store(xbc[row * size.row_width() + size.inner() + column], sum);
    });
  }
};

/// Comes behind StateSpaceBackward: adds the gradients of the parameters, summed over sequences.
struct StateSpaceParameterSums {
  StateSpaceGradients gradients;
  float* scratch;
  StateSpaceSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const StateSpaceScratch at = scratch_of(size, true);
    for_each_element(thread, 3 * size.heads, [&](std::int64_t i) {
      const std::int64_t head = i / 3, which = i % 3;
      float sum = 0;
      for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) {
        const HeadScratch memory(scratch, sequence * size.heads + head, at);
        sum += memory.sums[which];
      }
      (which == 0 ? gradients.decay_log : which == 1 ? gradients.step_bias : gradients.skip)[head] += sum;
    });
  }
};

}}}  // namespace plumb::kernels::simt

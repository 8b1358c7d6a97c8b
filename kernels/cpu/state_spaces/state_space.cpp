#include "kernels/cpu/state_spaces/state_space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cpu/products/panel.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/sigmoid.h"

namespace plumb { inline namespace kernels {
namespace {

float softplus(float x) {
  constexpr float kLarge = 20;  // where log(1 + e^x) is x in fp32
  return x > kLarge ? x : std::log1p(std::exp(x));
}

/// A run of one sequence's tokens, [first, first + count).
struct Chunk {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Results that the heads of a group have in common, and the memory in which one head after the other is computed.
struct Memory {
  float* scores = nullptr;    // [chunks, Q, Q] C B^T
  float* dscores = nullptr;   // [chunks, Q, Q]
  float* db = nullptr;        // [s, N]
  float* dc = nullptr;        // [s, N]
  float* mask = nullptr;      // [Q, Q] a head's weighted scores
  float* dmask = nullptr;     // [Q, Q]
  float* scaled = nullptr;    // [s, P] step x
  float* dscaled = nullptr;   // [Q, P]
  float* weighted = nullptr;  // [Q, P]
  float* through = nullptr;   // [Q, P] outputs of the states, or gradients through them
  float* states = nullptr;    // [chunks + 1, P, N] before each chunk, and behind the last
  float* dstate = nullptr;    // [P, N]
  float* step = nullptr;      // [s]
  float* decay = nullptr;     // [s] logarithm of the decay from the chunk's begin to behind the token
  float* ddecay = nullptr;    // [s]

  /// Returns the elements of all, laid out one behind the other from `begin` on.
  std::int64_t place(float* begin, const StateSpaceSize& size) {
    const std::int64_t s = size.sequence, q = std::min(size.chunk, s), p = size.head_size, n = size.state_size;
    const std::int64_t chunks = (s + q - 1) / q;
    std::int64_t at = 0;
    const auto take = [&](float*& tensor, std::int64_t elements) {
      tensor = begin == nullptr ? nullptr : begin + at;
      at += elements;
    };
    take(scores, chunks * q * q), take(dscores, chunks * q * q), take(db, s * n), take(dc, s * n);
    take(mask, q * q), take(dmask, q * q);
    take(scaled, s * p), take(dscaled, q * p), take(weighted, q * p), take(through, q * p);
    take(states, (chunks + 1) * p * n), take(dstate, p * n);
    take(step, s), take(decay, s), take(ddecay, s);
    return at;
  }
};

/// The heads of one group of one sequence.
class GroupOfHeads {
 public:
  GroupOfHeads(const StateSpaceInputs& inputs, const StateSpaceParameters& parameters, const StateSpaceSize& size,
               float* scratch, std::int64_t sequence, std::int64_t group)
      : size_(size), parameters_(parameters), sequence_(sequence), group_(group), row_(sequence * size.sequence) {
    memory_.place(scratch, size);
    const float* const first = inputs.xbc + row_ * size.row_width();
    x_ = first;
    b_ = first + size.inner() + group * size.state_size;
    c_ = b_ + size.groups * size.state_size;
    steps_ = inputs.steps + row_ * size.step_stride;
    earlier_ = inputs.earlier;
    for (std::int64_t i = 0; i < chunks(); ++i)
      multiply_transposed(scores(i), side(), rows(c_, i), rows(b_, i), at(i).count, at(i).count, size.state_size, 1);
  }

  std::int64_t first_head() const { return group_ * heads(); }
  std::int64_t last_head() const { return first_head() + heads(); }

  /// Writes y [s, H*P] of one head, and its state behind the last token where wanted.
  void forward(float* y, float* states, std::int64_t head) {
    take_steps(head);
    sweep_states(head);
    const float skip = parameters_.skip[head];
    for (std::int64_t i = 0; i < chunks(); ++i) {
      const Chunk chunk = at(i);
      weigh_scores(i);
      float* const out = y + (row_ + chunk.first) * size_.inner() + head * p();
      multiply(out, size_.inner(), {memory_.mask, side()}, {scaled(i), p()}, chunk.count, p(), chunk.count);
      multiply_transposed(memory_.through, p(), rows(c_, i), {state(i), n()}, chunk.count, p(), n(), 1);
      for (std::int64_t t = 0; t < chunk.count; ++t) {
        const float* const x = x_at(chunk.first + t, head);
        const float decay = std::exp(memory_.decay[chunk.first + t]);
        for (std::int64_t c = 0; c < p(); ++c)
          out[t * size_.inner() + c] += decay * memory_.through[t * p() + c] + skip * x[c];
      }
    }
    if (states != nullptr) std::copy_n(state(chunks()), p() * n(), states + state_place(head));
  }

  /// Comes before the first head's backward.
  void begin_backward() {
    std::fill_n(memory_.dscores, chunks() * side() * side(), 0.0F);
    std::fill_n(memory_.db, size_.sequence * n(), 0.0F);
    std::fill_n(memory_.dc, size_.sequence * n(), 0.0F);
  }

  /// Replaces one head's x and steps by their gradients, and adds to those that the group's heads have in common.
  void backward(float* xbc, float* steps, const StateSpaceGradients& gradients, float* of_states, const float* dy,
                std::int64_t head) {
    take_steps(head);
    sweep_states(head);
    std::fill_n(memory_.ddecay, size_.sequence, 0.0F);
    float* const carried = of_states == nullptr ? nullptr : of_states + state_place(head);
    if (carried == nullptr)
      std::fill_n(memory_.dstate, p() * n(), 0.0F);
    else
      std::copy_n(carried, p() * n(), memory_.dstate);
    const float rate = -std::exp(parameters_.decay_log[head]);
    double of_rate = 0, of_bias = 0, of_skip = 0;
    for (std::int64_t i = chunks() - 1; i >= 0; --i) {
      const Chunk chunk = at(i);
      const float* const dout = dy + (row_ + chunk.first) * size_.inner() + head * p();
      inside_chunk(i, dout);
      through_states(i, dout);
      float later = 0;  // gradient of the logarithm of this token's decay
      for (std::int64_t t = chunk.count - 1; t >= 0; --t) {
        const std::int64_t token = chunk.first + t;
        float* const x = xbc + (row_ + token) * size_.row_width() + head * p();
        const float *const dout_row = dout + t * size_.inner(), *const dscaled = memory_.dscaled + t * p();
        later += memory_.ddecay[token];
        const float dstep = rate * later + lane_sum(p(), [&](std::int64_t c) { return x[c] * dscaled[c]; });
        of_rate += memory_.step[token] * later;
        of_skip += lane_sum(p(), [&](std::int64_t c) { return x[c] * dout_row[c]; });
        for (std::int64_t c = 0; c < p(); ++c)
          x[c] = memory_.step[token] * dscaled[c] + parameters_.skip[head] * dout_row[c];
        float& raw = steps[(row_ + token) * size_.step_stride + head];
        raw = dstep * sigmoid(raw + parameters_.step_bias[head]);
        of_bias += raw;
      }
    }
    if (carried != nullptr) std::copy_n(memory_.dstate, p() * n(), carried);
    gradients.decay_log[head] += static_cast<float>(of_rate) * rate;
    gradients.step_bias[head] += static_cast<float>(of_bias);
    gradients.skip[head] += static_cast<float>(of_skip);
  }

  /// Replaces the group's B and C by their gradients. Comes behind the last head's backward.
  void end_backward(float* xbc) {
    for (std::int64_t i = 0; i < chunks(); ++i) {
      const Chunk chunk = at(i);
      const Panel dscores{memory_.dscores + i * side() * side(), side()};
      multiply(memory_.dc + chunk.first * n(), n(), dscores, rows(b_, i), chunk.count, n(), chunk.count, true);
      accumulate_transposed(memory_.db + chunk.first * n(), n(), dscores, rows(c_, i), chunk.count, n(), chunk.count);
    }
    for (std::int64_t t = 0; t < size_.sequence; ++t) {
      float* const b = xbc + (row_ + t) * size_.row_width() + size_.inner() + group_ * n();
      std::copy_n(memory_.db + t * n(), n(), b);
      std::copy_n(memory_.dc + t * n(), n(), b + size_.groups * n());
    }
  }

 private:
  std::int64_t p() const { return size_.head_size; }
  std::int64_t n() const { return size_.state_size; }
  std::int64_t heads() const { return size_.heads / size_.groups; }
  std::int64_t side() const { return std::min(size_.chunk, size_.sequence); }
  std::int64_t chunks() const { return (size_.sequence + side() - 1) / side(); }
  Chunk at(std::int64_t i) const { return {i * side(), std::min(side(), size_.sequence - i * side())}; }
  Panel rows(const float* columns, std::int64_t i) const {
    return {columns + at(i).first * size_.row_width(), size_.row_width()};
  }
  const float* x_at(std::int64_t token, std::int64_t head) const { return x_ + token * size_.row_width() + head * p(); }
  float* scores(std::int64_t i) const { return memory_.scores + i * side() * side(); }
  float* scaled(std::int64_t i) const { return memory_.scaled + at(i).first * p(); }
  float* state(std::int64_t i) const { return memory_.states + i * p() * n(); }
  std::int64_t state_place(std::int64_t head) const { return (sequence_ * size_.heads + head) * p() * n(); }
  /// Returns the logarithm of a chunk's whole decay.
  float chunk_decay(std::int64_t i) const { return memory_.decay[at(i).first + at(i).count - 1]; }

  /// Computes a head's step sizes, decays and scaled inputs.
  void take_steps(std::int64_t head) {
    const float rate = -std::exp(parameters_.decay_log[head]);
    for (std::int64_t t = 0; t < size_.sequence; ++t) {
      memory_.step[t] = softplus(steps_[t * size_.step_stride + head] + parameters_.step_bias[head]);
      memory_.decay[t] = rate * memory_.step[t] + (t % side() == 0 ? 0 : memory_.decay[t - 1]);
      const float* const x = x_at(t, head);
      for (std::int64_t c = 0; c < p(); ++c) memory_.scaled[t * p() + c] = memory_.step[t] * x[c];
    }
  }

  /// Writes the inputs of a chunk, decayed until its end, to `weighted`.
  void weigh_inputs(std::int64_t i) {
    for (std::int64_t t = 0; t < at(i).count; ++t) {
      const float decay = std::exp(chunk_decay(i) - memory_.decay[at(i).first + t]);
      for (std::int64_t c = 0; c < p(); ++c) memory_.weighted[t * p() + c] = decay * scaled(i)[t * p() + c];
    }
  }

  /// Computes a head's states before each chunk, and behind the last.
  void sweep_states(std::int64_t head) {
    if (earlier_ == nullptr)
      std::fill_n(state(0), p() * n(), 0.0F);
    else
      std::copy_n(earlier_ + state_place(head), p() * n(), state(0));
    for (std::int64_t i = 0; i < chunks(); ++i) {
      const float decay = std::exp(chunk_decay(i));
      for (std::int64_t e = 0; e < p() * n(); ++e) state(i + 1)[e] = decay * state(i)[e];
      weigh_inputs(i);
      accumulate_transposed(state(i + 1), n(), {memory_.weighted, p()}, rows(b_, i), p(), n(), at(i).count);
    }
  }

  /// Returns the decay from one token of a chunk to a later one.
  float decay_between(const Chunk& chunk, std::int64_t from, std::int64_t to) const {
    return std::exp(memory_.decay[chunk.first + to] - memory_.decay[chunk.first + from]);
  }

  /// Writes a chunk's scores times the decays between their tokens to `mask`; 0 for tokens in the future.
  void weigh_scores(std::int64_t i) {
    const Chunk chunk = at(i);
    for (std::int64_t to = 0; to < chunk.count; ++to) {
      float* const mask = memory_.mask + to * side();
      for (std::int64_t from = 0; from <= to; ++from)
        mask[from] = scores(i)[to * side() + from] * decay_between(chunk, from, to);
      std::fill(mask + to + 1, mask + chunk.count, 0.0F);
    }
  }

  /// Gradients through y = mask * scaled.
  void inside_chunk(std::int64_t i, const float* dout) {
    const Chunk chunk = at(i);
    weigh_scores(i);
    std::fill_n(memory_.dscaled, chunk.count * p(), 0.0F);
    accumulate_transposed(memory_.dscaled, p(), {memory_.mask, side()}, {dout, size_.inner()}, chunk.count, p(),
                          chunk.count);
    multiply_transposed(memory_.dmask, side(), {dout, size_.inner()}, {scaled(i), p()}, chunk.count, chunk.count, p(),
                        1);
    float* const dscores = memory_.dscores + i * side() * side();
    for (std::int64_t to = 0; to < chunk.count; ++to)
      for (std::int64_t from = 0; from <= to; ++from) {
        const float dmask = memory_.dmask[to * side() + from], of_decay = dmask * memory_.mask[to * side() + from];
        dscores[to * side() + from] += dmask * decay_between(chunk, from, to);
        memory_.ddecay[chunk.first + to] += of_decay;
        memory_.ddecay[chunk.first + from] -= of_decay;
      }
  }

  /// Gradients through the outputs of the state before the chunk, and through the state behind it, whose gradient
  /// becomes that of the state before.
  void through_states(std::int64_t i, const float* dout) {
    const Chunk chunk = at(i);
    const std::int64_t last = chunk.first + chunk.count - 1;
    float *const weighted = memory_.weighted, *const through = memory_.through, *const dstate = memory_.dstate;
    const float whole = std::exp(chunk_decay(i));
    multiply_transposed(through, p(), rows(b_, i), {dstate, n()}, chunk.count, p(), n(), 1);
    weigh_inputs(i);
    multiply(memory_.db + chunk.first * n(), n(), {weighted, p()}, {dstate, n()}, chunk.count, n(), p(), true);
    for (std::int64_t t = 0; t < chunk.count; ++t) {
      const float decay = std::exp(chunk_decay(i) - memory_.decay[chunk.first + t]);
      for (std::int64_t c = 0; c < p(); ++c) memory_.dscaled[t * p() + c] += decay * through[t * p() + c];
      const float of_decay =
          lane_sum(p(), [&](std::int64_t c) { return weighted[t * p() + c] * through[t * p() + c]; });
      memory_.ddecay[chunk.first + t] -= of_decay;
      memory_.ddecay[last] += of_decay;
    }
    memory_.ddecay[last] += whole * lane_sum(p() * n(), [&](std::int64_t e) { return dstate[e] * state(i)[e]; });

    multiply_transposed(through, p(), rows(c_, i), {state(i), n()}, chunk.count, p(), n(), 1);
    for (std::int64_t t = 0; t < chunk.count; ++t) {
      const float decay = std::exp(memory_.decay[chunk.first + t]);
      for (std::int64_t c = 0; c < p(); ++c) weighted[t * p() + c] = decay * dout[t * size_.inner() + c];
      memory_.ddecay[chunk.first + t] +=
          lane_sum(p(), [&](std::int64_t c) { return weighted[t * p() + c] * through[t * p() + c]; });
    }
    multiply(memory_.dc + chunk.first * n(), n(), {weighted, p()}, {state(i), n()}, chunk.count, n(), p(), true);
    for (std::int64_t e = 0; e < p() * n(); ++e) dstate[e] *= whole;
    accumulate_transposed(dstate, n(), {weighted, p()}, rows(c_, i), p(), n(), chunk.count);
  }

  const StateSpaceSize& size_;
  const StateSpaceParameters& parameters_;
  std::int64_t sequence_, group_, row_;  // row_: the sequence's first token
  const float *x_, *b_, *c_, *steps_, *earlier_;
  Memory memory_;
};

template <class Visit>
void for_each_group(const StateSpaceInputs& inputs, const StateSpaceParameters& parameters, const StateSpaceSize& size,
                    float* scratch, Visit visit) {
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence)
    for (std::int64_t group = 0; group < size.groups; ++group)
      visit(GroupOfHeads(inputs, parameters, size, scratch, sequence, group));
}

}  // namespace

std::int64_t state_space_scratch_elements(const StateSpaceSize& size) {
  return Memory{}.place(nullptr, size);
}

void state_space_forward(float* y, float* states, const StateSpaceInputs& inputs,
                         const StateSpaceParameters& parameters, const StateSpaceSize& size, float* scratch) {
  for_each_group(inputs, parameters, size, scratch, [&](GroupOfHeads group) {
    for (std::int64_t head = group.first_head(); head < group.last_head(); ++head) group.forward(y, states, head);
  });
}

void state_space_backward(float* xbc, float* steps, const StateSpaceGradients& gradients, float* of_states,
                          const float* dy, const float* earlier, const StateSpaceParameters& parameters,
                          const StateSpaceSize& size, float* scratch) {
  const StateSpaceInputs inputs{.xbc = xbc, .steps = steps, .earlier = earlier};
  for_each_group(inputs, parameters, size, scratch, [&](GroupOfHeads group) {
    group.begin_backward();
    for (std::int64_t head = group.first_head(); head < group.last_head(); ++head)
      group.backward(xbc, steps, gradients, of_states, dy, head);
    group.end_backward(xbc);
  });
}

}}  // namespace plumb::kernels

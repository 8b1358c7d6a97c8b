#pragma once
// The state space of Mamba-2 on a GPU (kernels/cpu/state_spaces/state_space.h has the formulas), over whole sequences.
// A block takes a head of a sequence, chunk after chunk. Its lanes divide the elements of each product, which stand in
// fp32 in a scratch of the head's own. What the heads of a group, or the sequences, have in common is summed behind it.
// Symbols are those of that file; Q tokens of a chunk.

#include "kernels/simt/activation.h"
#include "kernels/simt/state_spaces/head_of_states.h"

namespace plumb { inline namespace kernels { namespace simt {

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

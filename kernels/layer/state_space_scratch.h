#pragma once
// The memory in which a device computes one head of one sequence of a state space (kernels/simt/state_spaces/
// state_space.h), by the places of its parts. Symbols: s tokens of a sequence, Q of a chunk, P channels of a head, N of
// its state.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// Places in fp32 elements. A forward has the first four.
struct StateSpaceScratch {
  std::int64_t step = 0;           ///< [Q]
  std::int64_t decay = 0;          ///< [Q] logarithm of the decay from the chunk's begin to behind the token
  std::int64_t mask = 0;           ///< [Q, Q] scores C B^T times the decays between their tokens
  std::int64_t states = 0;         ///< [P, N] running, or in the backward [chunks, P, N] before each chunk
  std::int64_t ddecay = 0;         ///< [Q]
  std::int64_t dscores = 0;        ///< [Q, Q]
  std::int64_t of_decays = 0;      ///< [Q, Q] gradients of the logarithms of the decays between tokens
  std::int64_t scaled = 0;         ///< [Q, P] gradients of step x
  std::int64_t through_state = 0;  ///< [Q, P] gradients of step x through the state behind the chunk
  std::int64_t from_state = 0;     ///< [Q, P] outputs of the state before the chunk
  std::int64_t dstate = 0;         ///< [P, N]
  std::int64_t db = 0;             ///< [s, N]
  std::int64_t dc = 0;             ///< [s, N]
  std::int64_t sums = 0;           ///< [3] gradients of the decay's logarithm, the step's bias and the skip
  std::int64_t elements = 0;       ///< of all
};

constexpr StateSpaceScratch state_space_scratch(std::int64_t sequence, std::int64_t head_size, std::int64_t state_size,
                                                std::int64_t chunk, bool is_backward) {
  const std::int64_t q = chunk < sequence ? chunk : sequence, state = head_size * state_size;
  StateSpaceScratch at;
  at.decay = at.step + q;
  at.mask = at.decay + q;
  at.states = at.mask + q * q;
  at.elements = at.states + (is_backward ? (sequence + q - 1) / q : 1) * state;
  if (!is_backward) return at;
  at.ddecay = at.elements;
  at.dscores = at.ddecay + q;
  at.of_decays = at.dscores + q * q;
  at.scaled = at.of_decays + q * q;
  at.through_state = at.scaled + q * head_size;
  at.from_state = at.through_state + q * head_size;
  at.dstate = at.from_state + q * head_size;
  at.db = at.dstate + state;
  at.dc = at.db + sequence * state_size;
  at.sums = at.dc + sequence * state_size;
  at.elements = at.sums + 3;
  return at;
}

}}  // namespace plumb::kernels

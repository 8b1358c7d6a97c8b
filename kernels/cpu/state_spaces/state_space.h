#pragma once
// The state space of Mamba-2 (Dao & Gu 2024, 2405.21060). KernelKind kStateSpaceForward and kStateSpaceBackward. A head
// of P channels has a state h [P, N], and heads of one group share B and C:
//
//   step  = softplus(raw step + step_bias),  decay = exp(-exp(decay_log) step)
//   h_t   = decay_t h_{t-1} + (step_t x_t) B_t^T
//   y_t   = h_t C_t + skip x_t
//
// It is computed by the state space duality (section 6): inside a chunk of Q tokens as a product of matrices like causal
// attention, whose scores C_i B_j the decays between both tokens weigh, and from chunk to chunk by the states.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct StateSpaceSize {
  std::int64_t batch = 0;        ///< b
  std::int64_t sequence = 0;     ///< s, of a slice where sequences come in slices
  std::int64_t heads = 0;        ///< H
  std::int64_t head_size = 0;    ///< P
  std::int64_t groups = 1;       ///< G, which divides H
  std::int64_t state_size = 0;   ///< N
  std::int64_t chunk = 0;        ///< Q
  std::int64_t step_stride = 0;  ///< elements from one token's raw steps to the next token's

  constexpr std::int64_t inner() const { return heads * head_size; }
  constexpr std::int64_t row_width() const { return inner() + 2 * groups * state_size; }
  constexpr std::int64_t state_elements() const { return batch * inner() * state_size; }
};

/// xbc: [T, H*P + G*N + G*N] x, B and C; steps: [T, step_stride], whose first H columns are read
struct StateSpaceInputs {
  const float* xbc = nullptr;
  const float* steps = nullptr;
  const float* earlier = nullptr;  ///< [b, H, P, N] states before the first token; null for zeros
};

/// All are [H].
struct StateSpaceParameters {
  const float* decay_log = nullptr;
  const float* step_bias = nullptr;
  const float* skip = nullptr;
};
struct StateSpaceGradients {
  float* decay_log = nullptr;
  float* step_bias = nullptr;
  float* skip = nullptr;
};

/// Returns the elements that `scratch` needs in the functions below.
std::int64_t state_space_scratch_elements(const StateSpaceSize& size);

/// y: [T, H*P]; states: [b, H, P, N] states behind the last token, or null
void state_space_forward(float* y, float* states, const StateSpaceInputs& inputs,
                         const StateSpaceParameters& parameters, const StateSpaceSize& size, float* scratch);

/// Replaces xbc and steps by their gradients and adds those of the parameters. dy: [T, H*P]. Where sequences come in
/// slices, `of_states` [b, H, P, N] holds the gradient of the states behind the last token, and afterwards that of the
/// states before the first; otherwise it is null.
void state_space_backward(float* xbc, float* steps, const StateSpaceGradients& gradients, float* of_states,
                          const float* dy, const float* earlier, const StateSpaceParameters& parameters,
                          const StateSpaceSize& size, float* scratch);

}}  // namespace plumb::kernels

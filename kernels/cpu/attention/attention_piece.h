#pragma once
// Causal attention of some queries to some keys and values of the same sequences, a piece of the whole that ring
// attention adds up (Liu et al. 2023). Forward pieces are merged by their log-sum-exps, so that after all pieces the
// output and the log-sum-exp are those of attention in one go, whatever the pieces' order; backward pieces add.

#include <cstdint>

#include "kernels/cpu/attention/attention.h"

namespace plumb { inline namespace kernels {

/// A run of tokens of every sequence, in a buffer that holds `rows` rows of each sequence one behind the other.
struct AttentionRun {
  std::int64_t rows = 0;      ///< of a sequence in the buffer
  std::int64_t row = 0;       ///< of the run's first token, in its sequence's rows
  std::int64_t position = 0;  ///< of the run's first token in the sequence
  std::int64_t count = 0;     ///< tokens
};

struct AttentionPiece {
  AttentionSize size;  ///< its sequence is not read
  AttentionRun queries;
  AttentionRun keys;
};

/// Elements of the scratch that both functions need.
std::int64_t attention_piece_scratch_elements(const AttentionPiece& piece);

/// Adds the piece to output and log_sum_exp, which start as 0 and -infinity; a query that sees none of the keys stays
/// as it is. qkv: [b*rows, (a+2k)*d], of which the queries are read; keys_values: [b*rows, 2k*d], keys, then values;
/// output: [b*rows, a*d]; log_sum_exp: [b, a, rows], rows those of the queries
void attention_piece_forward(float* output, float* log_sum_exp, const float* qkv, const float* keys_values,
                             const AttentionPiece& piece, float* scratch);

/// Adds the piece's gradients to the queries' columns of dqkv [b*rows, (a+2k)*d] and to dkeys_values [b*rows, 2k*d].
/// output and log_sum_exp: of the whole attention.
void attention_piece_backward(float* dqkv, float* dkeys_values, const float* doutput, const float* qkv,
                              const float* keys_values, const float* output, const float* log_sum_exp,
                              const AttentionPiece& piece, float* scratch);

}}  // namespace plumb::kernels

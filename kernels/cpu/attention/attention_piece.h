#pragma once
// Causal attention of some queries to some keys and values of the same sequences. Ring attention adds up such pieces
// (Liu et al. 2023). Forward pieces are merged by their log-sum-exps, so that after all pieces, in any order, the
// output and the log-sum-exp are those of attention in one go. Backward pieces add.

#include <cstdint>

#include "kernels/cpu/attention/attention.h"

namespace plumb { inline namespace kernels {

/// A run of tokens of every sequence, in a buffer that holds `rows` rows of each sequence one behind the other.
struct AttentionRun {
  std::int64_t rows = 0;      ///< rows of each sequence in the buffer
  std::int64_t row = 0;       ///< row of the run's first token, among its sequence's rows
  std::int64_t position = 0;  ///< position of the run's first token in the sequence
  std::int64_t count = 0;     ///< tokens
};

struct AttentionPiece {
  AttentionSize size;  ///< sizes; `sequence` is not read
  AttentionRun queries;
  AttentionRun keys;
};

/// Returns the elements of the scratch that both functions need.
std::int64_t attention_piece_scratch_elements(const AttentionPiece& piece);

/// Adds the piece to output and log_sum_exp, which start as 0 and -infinity. A query that sees none of the keys stays
/// as it is. qkv: [b*rows, (a+2k)*d], whose queries are read; keys_values: [b*rows, 2k*d], keys, then values; output:
/// [b*rows, a*d]; log_sum_exp: [b, a, rows] with the rows of the queries
void attention_piece_forward(float* output, float* log_sum_exp, const float* qkv, const float* keys_values,
                             const AttentionPiece& piece, float* scratch);

/// Adds the piece's gradients to the queries' columns of dqkv [b*rows, (a+2k)*d] and to dkeys_values [b*rows, 2k*d].
/// output and log_sum_exp are those of the whole attention.
void attention_piece_backward(float* dqkv, float* dkeys_values, const float* doutput, const float* qkv,
                              const float* keys_values, const float* output, const float* log_sum_exp,
                              const AttentionPiece& piece, float* scratch);

}}  // namespace plumb::kernels

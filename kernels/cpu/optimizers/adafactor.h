#pragma once
// One Adafactor update of one matrix or vector. The second moment of a matrix is kept as sums by row and by column, so
// that its state is R + C numbers instead of R*C.

#include <cstdint>

#include "kernels/optimizer.h"

namespace plumb { inline namespace kernels {

/// Updates a matrix. With b = 1 - t^-exponent and t = `step`, counted from 1:
///   rows = b rows + (1-b) sum_c (g^2 + e1), columns = b columns + (1-b) sum_r (g^2 + e1)
///   u[r,c] = g[r,c] / sqrt(rows[r] columns[c] / sum(rows))
///   w -= lr max(e2, rms(w)) (u / max(1, rms(u) / threshold)) + lr decay w, g = 0
/// (Shazeer & Stern 2018, algorithms 4 and 5). parameters, gradients: [R, C]; row_sums: [R]; column_sums: [C]
void adafactor_update_matrix(float* parameters, float* gradients, float* row_sums, float* column_sums,
                             std::int64_t rows, std::int64_t columns, const Adafactor& optimizer, std::int64_t step);

/// Updates a vector in the same way, but with the second moment of each element: v = b v + (1-b) (g^2 + e1) and u = g /
/// sqrt(v) (algorithm 6's vectors). parameters, gradients, second_moment: [elements]
void adafactor_update_vector(float* parameters, float* gradients, float* second_moment, std::int64_t elements,
                             const Adafactor& optimizer, std::int64_t step);

}}  // namespace plumb::kernels

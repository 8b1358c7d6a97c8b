#include "kernels/cpu/state_spaces/gated_norm.h"

#include <cmath>

#include "kernels/cpu/reduce.h"
#include "kernels/cpu/sigmoid.h"

namespace plumb { inline namespace kernels {

void gated_norm_forward(float* out, float* rstd, const float* y, const float* z, const float* gain,
                        const GatedNormSize& size, float epsilon) {
  const std::int64_t channels = size.columns / size.groups;
  for (std::int64_t row = 0; row < size.rows; ++row)
    for (std::int64_t group = 0; group < size.groups; ++group) {
      const std::int64_t first = row * size.columns + group * channels;
      const float *const y_row = y + first, *const z_row = z + row * size.stride + group * channels;
      float* const out_row = out + first;
      for (std::int64_t c = 0; c < channels; ++c) out_row[c] = y_row[c] * silu(z_row[c]);
      const float squares = lane_sum(channels, [&](std::int64_t c) { return out_row[c] * out_row[c]; });
      const float scale = 1.0F / std::sqrt(squares / static_cast<float>(channels) + epsilon);
      rstd[row * size.groups + group] = scale;
      for (std::int64_t c = 0; c < channels; ++c) out_row[c] *= scale * gain[group * channels + c];
    }
}

void gated_norm_backward(float* dy, float* z, float* dgain, const float* dout, const float* y, const float* rstd,
                         const float* gain, const GatedNormSize& size) {
  const std::int64_t channels = size.columns / size.groups;
  for (std::int64_t row = 0; row < size.rows; ++row)
    for (std::int64_t group = 0; group < size.groups; ++group) {
      const std::int64_t first = row * size.columns + group * channels;
      const float *const dout_row = dout + first, *const y_row = y + first, *const gains = gain + group * channels;
      float *const dy_row = dy + first, *const z_row = z + row * size.stride + group * channels;
      float* const dgains = dgain + group * channels;
      const float scale = rstd[row * size.groups + group];
      const auto normed = [&](std::int64_t c) { return y_row[c] * silu(z_row[c]); };
      for (std::int64_t c = 0; c < channels; ++c) dgains[c] += dout_row[c] * normed(c) * scale;
      const float projection = lane_sum(channels, [&](std::int64_t c) { return dout_row[c] * gains[c] * normed(c); }) *
                               scale * scale / static_cast<float>(channels);
      for (std::int64_t c = 0; c < channels; ++c) {
        const float gate = silu(z_row[c]);
        const float du = scale * (dout_row[c] * gains[c] - y_row[c] * gate * projection);
        z_row[c] = du * y_row[c] * silu_slope(z_row[c]);
        dy_row[c] = du * gate;
      }
    }
}

}}  // namespace plumb::kernels

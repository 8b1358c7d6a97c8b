#include "kernels/cpu/dropout.h"

namespace plumb { inline namespace kernels {

void dropout(float* y, const float* x, const DropoutKey& key, const DropoutRows& rows, double probability) {
  const auto limit = static_cast<float>(probability);
  const auto scale = static_cast<float>(1.0 / (1.0 - probability));
  for (std::int64_t sample = 0; sample < rows.count; ++sample)
    for (std::int64_t token = 0; token < rows.tokens; ++token) {
      const std::uint64_t row = counter_random({kDropoutStream, key.seed, key.step, key.layer, key.place,
                                                static_cast<std::uint64_t>(rows.first_sample + sample),
                                                static_cast<std::uint64_t>(rows.first_token + token)});
      for (std::int64_t c = 0; c < rows.columns; ++c) {
        const std::uint64_t bits = mix_bits(row ^ mix_bits(static_cast<std::uint64_t>(rows.first_column + c)));
        y[c] = drops(bits, limit) ? 0.0F : scale * x[c];
      }
      y += rows.columns;
      x += rows.columns;
    }
}

void drop_probabilities(float* y, const float* x, const AttentionDropout& dropout, std::int64_t sequence,
                        std::int64_t head, std::int64_t query, std::int64_t first_key, std::int64_t count) {
  const auto limit = static_cast<float>(dropout.probability);
  const auto scale = static_cast<float>(1.0 / (1.0 - dropout.probability));
  const DropoutKey& key = dropout.key;
  const std::uint64_t row =
      counter_random({kDropoutStream, key.seed, key.step, key.layer, key.place,
                      static_cast<std::uint64_t>(dropout.first_sample + sequence),
                      static_cast<std::uint64_t>(dropout.first_head + head), static_cast<std::uint64_t>(query)});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = mix_bits(row ^ mix_bits(static_cast<std::uint64_t>(first_key + i)));
    y[i] = drops(bits, limit) ? 0.0F : scale * x[i];
  }
}

}}  // namespace plumb::kernels

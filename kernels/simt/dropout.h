#pragma once
// Dropout on a GPU, with the mask that the CPU draws (kernels/cpu/dropout.h), and the residual addition behind it.
// The device reads the step of the key from `numbers` unless that is null, so that every replay makes the same calls.

#include "kernels/cpu/dropout.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace kernels { namespace simt {

/// y = residual + (x / (1 - probability) where an element stays, 0 where it is dropped); a null residual counts as
/// zeros. x, y, residual: [count * tokens, columns]
template <class S>
struct Dropout {
  S* y;
  const S* x;
  const S* residual;
  DropoutKey key;
  DropoutRows rows;
  float probability;
  const StepNumbers* numbers = nullptr;  ///< one element; null: key.step counts

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const float scale = 1.0F / (1.0F - probability);
    const std::uint64_t step = numbers == nullptr ? key.step : numbers->replay;
    for_each_element(thread, rows.count * rows.tokens * rows.columns, [&](std::int64_t i) {
      const std::int64_t row = i / rows.columns;
      const auto bits = dropout_bits(step, static_cast<std::uint64_t>(rows.first_sample + row / rows.tokens),
                                     static_cast<std::uint64_t>(rows.first_token + row % rows.tokens),
                                     static_cast<std::uint64_t>(rows.first_column + i % rows.columns));
      const float kept = drops(bits, probability) ? 0.0F : widened(x[i]) * scale;
      store(y[i], kept + (residual == nullptr ? 0.0F : widened(residual[i])));
    });
  }

 private:
  PLUMB_SIMT std::uint64_t dropout_bits(std::uint64_t step, std::uint64_t sample, std::uint64_t token,
                                        std::uint64_t column) const {
    return counter_random({kDropoutStream, key.seed, step, key.layer, key.place, sample, token, column});
  }
};

/// Returns the factor of the probabilities that dropout keeps.
PLUMB_SIMT float kept_scale(const AttentionDropout& dropout) {
  return 1.0F / (1.0F - static_cast<float>(dropout.probability));
}

/// Computes the factors of a head's attention probabilities: 0 where one is dropped, 1 / (1 - probability) elsewhere.
class ProbabilityMask {
 public:
  /// `numbers` has the step, unless it is null.
  PLUMB_SIMT ProbabilityMask(const AttentionDropout& dropout, const StepNumbers* numbers, std::int64_t sequence,
                             std::int64_t head)
      : limit_(static_cast<float>(dropout.probability)),
        scale_(kept_scale(dropout)),
        of_head_(counter_random({kDropoutStream, dropout.key.seed,
                                 numbers == nullptr ? dropout.key.step : numbers->replay, dropout.key.layer,
                                 dropout.key.place, static_cast<std::uint64_t>(dropout.first_sample + sequence),
                                 static_cast<std::uint64_t>(dropout.first_head + head)})) {}

  /// `query` and `key` are positions in the sequence.
  PLUMB_SIMT bool keeps(std::int64_t query, std::int64_t key) const {
    const std::uint64_t of_query = hash_on(of_head_, static_cast<std::uint64_t>(query));
    return !drops(hash_on(of_query, static_cast<std::uint64_t>(key)), limit_);
  }
  PLUMB_SIMT float factor(std::int64_t query, std::int64_t key) const {
    if (!(limit_ > 0)) return 1.0F;
    return keeps(query, key) ? scale_ : 0.0F;
  }

 private:
  float limit_, scale_;
  std::uint64_t of_head_;  ///< the hash of all that comes before a query and a key
};

}}}  // namespace plumb::kernels::simt

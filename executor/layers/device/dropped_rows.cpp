#include "executor/layers/device/dropped_rows.h"

#include <algorithm>

#include "kernels/layer/layer_ends.h"

namespace plumb { inline namespace executor {

void drop_rows(const StepCall& of, std::byte* y, const std::byte* x, const std::byte* residual, std::int64_t columns,
               double probability) {
  const DeviceLayerCall& call = of.call;
  const LayerWork& work = of.program.own();
  const auto drop = [&](std::int64_t row, const DropoutRows& rows) {
    const std::int64_t at = row * columns * of.program.element_bytes();
    call.kernels.dropout(y + at, x + at, residual == nullptr ? nullptr : residual + at, call.dropout_key(of.step.mask),
                         rows, probability, call.numbers);
  };
  const ContextTokens& tokens = call.context.tokens;
  if (!call.tensor.divides_rows && tokens.second.count == 0)
    return drop(0, {.first_sample = call.first_sample,
                    .count = work.microbatch,
                    .first_token = tokens.first.first,
                    .tokens = work.sequence,
                    .columns = columns});
  const std::int64_t own = own_rows_in(work);
  const std::int64_t first = call.tensor.divides_rows ? call.tensor.rank() * own : 0;
  std::int64_t row = 0;  // first row of the run, among all rows
  for (std::int64_t sample = 0; sample < work.microbatch; ++sample)
    for (const TokenRange& run : {tokens.first, tokens.second}) {
      const std::int64_t begin = std::clamp<std::int64_t>(first - row, 0, run.count);
      const std::int64_t end = std::clamp<std::int64_t>(first + own - row, begin, run.count);
      if (begin < end)
        drop(row + begin - first, {.first_sample = call.first_sample + sample,
                                   .count = 1,
                                   .first_token = run.first + begin,
                                   .tokens = end - begin,
                                   .columns = columns});
      row += run.count;
    }
}

}}  // namespace plumb::executor

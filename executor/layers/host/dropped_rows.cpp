#include "executor/layers/host/dropped_rows.h"

#include <algorithm>

namespace plumb { inline namespace executor {

void drop_rows(const HostStep& of) {
  const CpuContext& context = of.context();
  const LayerCall& call = of.call;
  const std::int64_t own = of.rows(), first = context.divides_rows() ? context.seat.tensor.rank * own : 0;
  std::vector<DropoutRows> runs;
  std::int64_t row = 0;
  for (std::int64_t sample = 0; sample < context.work.microbatch; ++sample)
    for (const TokenRange& run : {call.place.slice, call.place.second_slice}) {
      const std::int64_t begin = std::clamp(first - row, std::int64_t{0}, run.count);
      const std::int64_t end = std::clamp(first + own - row, begin, run.count);
      if (begin < end)
        runs.push_back({.first_sample = call.place.first_sample + sample,
                        .count = 1,
                        .first_token = run.first + begin,
                        .tokens = end - begin,
                        .columns = of.columns()});
      row += run.count;
    }
  of.kernels().dropout(of.written(0), of.read(0), call.dropout_key(of.step.mask), runs, dropout_of(of.program.layer()));
}

}}  // namespace plumb::executor

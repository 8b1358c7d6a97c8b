#include "tools/verbs/calibrate/measure_gpus.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "executor/measure/device/measure_nccl_slowdown.h"
#include "executor/transport/transport.h"
#include "tools/io/console.h"
#include "tools/io/progress.h"
#include "tools/runs/cuda_run.h"

namespace plumb { inline namespace tools {

NcclMeasurement measure_gpus(const NcclMeasureOptions& options) {
  const NcclLibrary& library = open_nccl();
  NcclMeasurement measured;
  const std::string wrong =
      with_progress("measuring", options.budget, [&] { return library.measure(options, measured); });
  if (!wrong.empty()) throw RunError(wrong);
  for (const NcclSample& sample : measured.samples)
    if (sample.wrong > 0)
      print_note(fmt::format("{}: {} values are wrong", collective_name(sample.sample.op), sample.wrong));
  const auto count = std::ranges::count(measured.samples, false, &NcclSample::in_place);
  const auto all = std::ssize(options.sizes_bytes) * kMeasuredCollectives;
  if (count < all)
    print_note(fmt::format("{} of {} sizes of collectives of {} GPUs did not fit into {:g} s: give a larger --budget",
                           all - count, all, measured.ranks, options.budget.count()));
  if (!measured.slowdowns.empty() && measured.slowdowns.front().product_edge < NcclSlowdownOptions{}.most_edge)
    print_note(
        fmt::format("products beside collectives were of {0} x {0}, which may not fill a GPU: give a larger --budget",
                    measured.slowdowns.front().product_edge));
  return measured;
}

}}  // namespace plumb::tools

#include "executor/measure/measure.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <fmt/format.h>

#include "executor/measure/host/measure_kernels.h"
#include "executor/measure/measure_transport.h"
#include "kernels/cpu/products/gemm.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the processor's own name, or "cpu" if it gives none.
std::string processor_name() {
#if defined(__x86_64__)
  unsigned int brand[12] = {};
  for (unsigned int leaf = 0; leaf < 3; ++leaf) {
    unsigned int* words = brand + 4 * leaf;
    if (__get_cpuid(0x80000002U + leaf, words, words + 1, words + 2, words + 3) == 0) return "cpu";
  }
  std::string name(reinterpret_cast<const char*>(brand), sizeof brand);
  name.resize(std::min(name.size(), name.find('\0')));
  const auto first = name.find_first_not_of(' ');
  const auto last = name.find_last_not_of(' ');
  if (first != std::string::npos) return name.substr(first, last - first + 1);
#endif
  return "cpu";
}

}  // namespace

Measurement measure_cpu(const MeasureOptions& options) {
  if (options.busy_ranks < 1) throw SpecError(fmt::format("{} busy ranks: give at least 1", options.busy_ranks));
  if (!(options.budget > Seconds{0}))
    throw SpecError(fmt::format("a budget of {} s: give a positive time", options.budget.count()));
  use_one_blas_thread();

  Measurement measurement{.backend = "cpu",
                          .device = fmt::format("{}, OpenBLAS for {}", processor_name(), blas_core()),
                          .cores = static_cast<int>(std::thread::hardware_concurrency()),
                          .memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE),
                          .date = options.date};
  struct Part {
    bool wanted;
    double weight;
  };
  const Part gemm{options.gemm, 5}, attention{options.attention, 1.5}, other{options.other_kernels, 2},
      messages{options.messages, 1.5};
  double weights = 0;
  for (const Part& part : {gemm, attention, other, messages}) weights += part.wanted ? part.weight : 0;
  const auto budget_of = [&](const Part& part) { return options.budget * (part.weight / weights); };
  const auto append = [&](std::vector<KernelSample> samples) {
    measurement.samples.insert(measurement.samples.end(), samples.begin(), samples.end());
  };
  std::vector<KernelLadder> ladders;
  const auto add_ladder = [&](const Part& part, std::vector<KernelCall> calls) {
    if (part.wanted) ladders.push_back({.calls = std::move(calls), .budget = budget_of(part)});
  };
  add_ladder(gemm, gemm_ladder());
  add_ladder(attention, attention_ladder());
  add_ladder(other, other_kernel_ladder());
  if (!ladders.empty()) append(measure_kernels(std::move(ladders), options.busy_ranks));
  if (messages.wanted) append(measure_transport(budget_of(messages)));
  return measurement;
}

}}  // namespace plumb::executor

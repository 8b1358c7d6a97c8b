#include "tools/machine/machine_speed.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/measure/host/measure_kernels.h"
#include "kernels/cpu/products/gemm.h"
#include "planner/price/kernel/kernel_price.h"

namespace plumb { inline namespace tools {
namespace {

constexpr Seconds kShortest{100e-6};  // the timing of shorter kernels costs more than their run
constexpr Seconds kLongest{3e-3};
constexpr std::size_t kOfAKind = 4;

/// The kernels on which training spends most of its time.
constexpr KernelKind kWatched[] = {KernelKind::kGemm,
                                   KernelKind::kAttentionForward,
                                   KernelKind::kAttentionBackward,
                                   KernelKind::kActivationForward,
                                   KernelKind::kActivationBackward,
                                   KernelKind::kNormBackward};

/// Returns at most kOfAKind of the samples, spread evenly from the shortest to the longest.
std::vector<KernelSample> spread(std::vector<KernelSample> samples) {
  std::erase_if(samples, [](const KernelSample& s) { return s.median < kShortest || s.median > kLongest; });
  std::ranges::stable_sort(samples, {}, &KernelSample::median);
  if (samples.size() <= kOfAKind) return samples;
  std::vector<KernelSample> few;
  for (std::size_t i = 0; i < kOfAKind; ++i) few.push_back(samples[i * (samples.size() - 1) / (kOfAKind - 1)]);
  return few;
}

std::string speed_text(const std::optional<MachineSpeed>& speed) {
  return speed ? fmt::format("{:.2f}", speed->ratio) : std::string("an unknown share");
}

}  // namespace

std::optional<MachineSpeed> speed_between(std::span<const KernelSample> calibrated,
                                          std::span<const KernelSample> measured) {
  std::map<std::pair<std::string, std::vector<std::int64_t>>, Seconds> before;
  for (const KernelSample& sample : calibrated) before[{sample.kernel, sample.shape}] = sample.median;
  double logarithms = 0;
  int count = 0;
  for (const KernelSample& sample : measured) {
    const auto found = before.find({sample.kernel, sample.shape});
    if (found == before.end()) continue;
    logarithms += std::log(found->second / sample.median);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return MachineSpeed{std::exp(logarithms / count), count};
}

std::optional<MachineSpeed> machine_speed(const ClusterSpec& cluster, int busy_ranks, Seconds budget) {
  use_one_blas_thread();
  std::vector<KernelCall> calls;
  std::vector<KernelSample> calibrated;
  for (const KernelKind kind : kWatched)
    for (const KernelSample& sample : spread(samples_of(cluster, kernel_name(kind), busy_ranks))) {
      if (sample.busy_ranks != busy_ranks) continue;
      calls.push_back(kernel_call(kind, sample.shape));
      calibrated.push_back(sample);
    }
  if (calls.empty()) return std::nullopt;
  return speed_between(calibrated, measure_kernels(std::move(calls), busy_ranks, budget));
}

nlohmann::ordered_json to_json(const MachineState& state) {
  nlohmann::ordered_json json = {
      {"speed_before", nullptr}, {"speed_after", nullptr}, {"others_cores", nullptr}, {"host_cores", nullptr}};
  if (state.before) json["speed_before"] = state.before->ratio;
  if (state.after) json["speed_after"] = state.after->ratio;
  if (state.others) json["others_cores"] = state.others->cores, json["host_cores"] = state.others->host;
  return json;
}

std::string to_text(const MachineState& state) {
  std::string text;
  if (state.before || state.after)
    text = fmt::format("the machine ran at {} of its calibrated speed before the run, and at {} after it ({} kernels)",
                       speed_text(state.before), speed_text(state.after),
                       state.before ? state.before->kernels : state.after->kernels);
  if (state.others) {
    text += fmt::format("{}other programs had {:.2f} cores under way", text.empty() ? "" : "; ", state.others->cores);
    if (state.others->host >= 0.005) text += fmt::format(", and the host took {:.2f}", state.others->host);
  }
  return text.empty() ? text : text + "\n";
}

}}  // namespace plumb::tools

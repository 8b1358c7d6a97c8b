#include "planner/score/measured_quantities.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Returns the positive number under that key, if there is one.
std::optional<double> number(const json& object, std::string_view key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number() || !(found->get<double>() > 0)) return std::nullopt;
  return found->get<double>();
}

const json& part(const json& row, std::string_view key) {
  static const json kNothing = json::object();
  const auto found = row.find(key);
  return found != row.end() && found->is_object() ? *found : kNothing;
}

/// Returns the step's time that follows from a throughput.
std::optional<double> seconds_from_throughput(const json& row, const json& measured) {
  const auto batch = number(row, "gbs");
  const auto gpus = number(row, "gpus");
  const auto sequence = number(part(row, "model"), "seq");
  if (!batch) return std::nullopt;
  for (const char* key : {"samples_per_s", "seq_per_s"}) {
    if (const auto rate = number(measured, key)) return *batch / *rate;
  }
  if (const auto rate = number(measured, "samples_per_gpu_s"); rate && gpus) return *batch / (*rate * *gpus);
  if (!sequence) return std::nullopt;
  if (const auto rate = number(measured, "tokens_per_s")) return *batch * *sequence / *rate;
  if (const auto rate = number(measured, "tokens_per_s_per_gpu"); rate && gpus) {
    return *batch * *sequence / (*rate * *gpus);
  }
  return std::nullopt;
}

std::optional<double> step_seconds(const json& row, const json& measured) {
  for (const char* key : {"step_time_s", "step_time_s_median"}) {
    if (const auto seconds = number(measured, key)) return seconds;
  }
  if (const auto milliseconds = number(measured, "step_time_ms")) return *milliseconds * 1e-3;
  if (const auto seconds = number(part(row, "derived"), "step_time_s")) return seconds;
  return seconds_from_throughput(row, measured);
}

std::optional<double> peak_bytes(const json& measured, double gigabyte) {
  const std::array<std::pair<std::string_view, double>, 9> keys = {{{"peak_mem_allocated_bytes", 1},
                                                                    {"peak_alloc_gib", kGibibyte},
                                                                    {"peak_mem_gib", kGibibyte},
                                                                    {"peak_mem_mib", kMebibyte},
                                                                    {"peak_mem_max_mb", kMebibyte},
                                                                    {"peak_mem_mb", kMebibyte},
                                                                    {"peak_mem_gb", gigabyte},
                                                                    {"peak_mem_gb_reported", gigabyte},
                                                                    {"peak_mem_bytes", 1}}};
  for (const auto& [key, unit] : keys) {
    if (const auto value = number(measured, key)) return *value * unit;
  }
  return std::nullopt;
}

/// Reads {"0": {"max_allocated_mb": ...}, ...} or {"0": MB, ...}.
std::vector<double> bytes_by_rank(const json& measured) {
  const json& ranks = part(measured, "peak_by_rank_mb");
  std::vector<double> bytes;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto found = ranks.find(std::to_string(rank));
    if (found == ranks.end()) return {};
    const auto value = found->is_number() ? number(ranks, std::to_string(rank)) : number(*found, "max_allocated_mb");
    if (!value) return {};
    bytes.push_back(*value * kMebibyte);
  }
  return bytes;
}

/// Returns nothing where the source's way of counting is not known.
std::optional<FlopsCount> flops_count(const json& row) {
  const auto named = row.find("flops_count");
  if (named == row.end()) return std::nullopt;
  if (*named == "model") return FlopsCount::kModel;
  if (*named == "causal") return FlopsCount::kCausal;
  if (*named == "executed") return FlopsCount::kExecuted;
  return std::nullopt;
}

}  // namespace

MeasuredQuantities measured_quantities(const json& row) {
  const json& measured = part(row, "measured");
  const auto seconds = [](std::optional<double> value, double unit) {
    return value ? std::optional(Seconds{*value * unit}) : std::nullopt;
  };
  MeasuredQuantities result{.step_time = seconds(step_seconds(row, measured), 1),
                            .layer_forward = seconds(number(measured, "fwd_ms"), 1e-3),
                            .layer_backward = seconds(number(measured, "bwd_ms"), 1e-3),
                            .peak_memory_bytes = peak_bytes(measured, number(row, "memory_gb_bytes").value_or(1e9)),
                            .memory_by_rank_bytes = bytes_by_rank(measured)};
  if (const auto least = number(measured, "peak_mem_min_mb")) result.least_memory_bytes = *least * kMebibyte;
  if (!result.memory_by_rank_bytes.empty() && !result.peak_memory_bytes) {
    result.peak_memory_bytes = *std::ranges::max_element(result.memory_by_rank_bytes);
  }
  if (const auto count = flops_count(row)) {
    result.flops_count = *count;
    const auto utilization = number(measured, "mfu_pct"), peak = number(row, "mfu_peak_tflops");
    const auto rate = number(measured, "tflops_per_gpu");
    if (rate) result.flops_per_device_second = *rate * 1e12;
    if (utilization && peak) result.flops_per_device_second = *utilization / 100 * *peak * 1e12;
    if (utilization && !result.flops_per_device_second) result.utilization = *utilization / 100;
  }
  const auto memory_of = row.find("memory_of");
  result.memory_of_device = memory_of != row.end() && *memory_of == "device";
  result.memory_of_last_rank = memory_of != row.end() && *memory_of == "last rank";
  const auto oom = measured.find("oom");
  result.out_of_memory = oom != measured.end() && oom->is_boolean() && oom->get<bool>();
  return result;
}

}}  // namespace plumb::planner

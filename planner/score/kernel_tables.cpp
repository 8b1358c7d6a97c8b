#include "planner/score/kernel_tables.h"

#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "kernels/layer.h"
#include "planner/score/known_pattern.h"
#include "planner/score/row_fields.h"
#include "planner/score/source_mapping.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Returns the positive whole number behind "NAME=" in a key such as "ng=20, M=1232, N=3072".
std::optional<std::int64_t> number_in(const std::string& key, const std::string& name) {
  const std::vector<std::string> match =
      known_pattern("(?-i)(?:^|[ ,])" + name + "=([0-9]{1,15})(?:,|$)").groups_in(key);
  if (match.empty()) return std::nullopt;
  const std::int64_t value = std::stoll(match[1]);
  return value > 0 ? std::optional(value) : std::nullopt;
}

using Shape = std::vector<std::int64_t>;  // shape of a GEMM in the form of kernels/layer.h

std::optional<Shape> matmul_shape(const json& row) {
  const auto m = integer_at(row, "m"), n = integer_at(row, "n"), k = integer_at(row, "k");
  if (!m || !n || !k || *m < 1 || *n < 1 || *k < 1) return std::nullopt;
  const std::string layout = text_at(row, "layout");
  if (layout != "TN" && layout != "NN" && layout != "NT") return std::nullopt;
  const GemmForm form = layout == "TN"   ? GemmForm::kForward
                        : layout == "NN" ? GemmForm::kInputGrad
                                         : GemmForm::kWeightGrad;
  return Shape{*m, *n, *k, integer_at(row, "b").value_or(1), static_cast<std::int64_t>(form)};
}

std::optional<Shape> grouped_shape(const json& row) {
  const std::string key = text_at(row, "key");
  const auto groups = number_in(key, "ng"), rows = number_in(key, "M"), outputs = number_in(key, "N"),
             inputs = number_in(key, "K");
  if (!groups || !rows || !outputs || !inputs) return std::nullopt;
  const auto form = [](GemmForm value) { return static_cast<std::int64_t>(value); };
  if (key.find("stage=fwd") != std::string::npos) {
    return Shape{*rows, *outputs, *inputs, *groups, form(GemmForm::kForward)};
  }
  if (key.find("stage=bwd_grad_act") != std::string::npos) {
    return Shape{*rows, *inputs, *outputs, *groups, form(GemmForm::kInputGrad)};
  }
  if (key.find("stage=bwd_grad_w") != std::string::npos) {
    return Shape{*outputs, *inputs, *rows, *groups, form(GemmForm::kWeightGrad)};
  }
  return std::nullopt;
}

bool in_fp32(const json& row) {
  return text_at(row, "out_dtype") == "fp32" || text_at(row, "key").find("main_grad_dtype=fp32") != std::string::npos;
}

}  // namespace

std::vector<KernelSample> kernel_samples_of(const std::vector<json>& rows, const std::string& hardware) {
  const Pattern expression(hardware);
  struct Chosen {
    double seconds = 0;
    bool fp32 = false;
  };
  std::map<Shape, Chosen> chosen;
  for (const json& row : rows) {
    if (!expression.found_in(text_at(row, "hardware"))) continue;
    const std::string op = text_at(row, "op");
    const std::optional<Shape> shape = op == "matmul"         ? matmul_shape(row)
                                       : op == "group_matmul" ? grouped_shape(row)
                                                              : std::nullopt;
    const json& rate = value_at(row, "measured.tflops");
    if (!shape || !rate.is_number() || !(rate.get<double>() > 0)) continue;
    double flops = 2;
    for (std::size_t i = 0; i < 4; ++i) flops *= static_cast<double>((*shape)[i]);
    const Chosen measured{.seconds = flops / (rate.get<double>() * 1e12), .fp32 = in_fp32(row)};
    const auto [known, added] = chosen.try_emplace(*shape, measured);
    if (!added && measured.fp32 && !known->second.fp32) known->second = measured;
  }
  std::vector<KernelSample> samples;
  for (const auto& [shape, measured] : chosen) {
    const Seconds time{measured.seconds};
    samples.push_back({.kernel = std::string(kernel_name(KernelKind::kGemm)),
                       .shape = shape,
                       .median = time,
                       .fastest = time,
                       .slowest = time,
                       .repeats = 1});
  }
  return samples;
}

}}  // namespace plumb::planner

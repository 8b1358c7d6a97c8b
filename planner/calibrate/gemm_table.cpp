#include "planner/calibrate/gemm_table.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "kernels/layer.h"
#include "planner/logs/text_lines.h"
#include "schedules/error.h"
#include "schedules/forms/whole_number.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

bool is_content(std::string_view line) {
  return !line.empty() && !line.starts_with('#') && !words_of(line).empty();
}

std::optional<std::size_t> column(const std::vector<std::string_view>& head, std::string_view name) {
  const auto found = std::ranges::find(head, name);
  if (found == head.end()) return std::nullopt;
  return static_cast<std::size_t>(found - head.begin());
}

std::int64_t form_of(std::string_view layout, const std::string& file, std::size_t line) {
  if (layout == "TN") return static_cast<std::int64_t>(GemmForm::kForward);
  if (layout == "NN") return static_cast<std::int64_t>(GemmForm::kInputGrad);
  if (layout == "NT") return static_cast<std::int64_t>(GemmForm::kWeightGrad);
  fail_at_line(file, line, fmt::format("layout \"{}\" is unknown: give TN, NN or NT", layout));
}

}  // namespace

bool is_gemm_table(std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    if (!is_content(line)) continue;
    const std::vector<std::string_view> head = cells_of(line, ',');
    return column(head, "m") && column(head, "n") && column(head, "k");
  }
  return false;
}

std::vector<KernelSample> parse_gemm_table(std::string_view text, const std::string& file) {
  std::vector<KernelSample> samples;
  std::vector<std::string_view> head;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t number = 0; number < lines.size(); ++number) {
    if (!is_content(lines[number])) continue;
    const std::vector<std::string_view> cells = cells_of(lines[number], ',');
    if (head.empty()) {
      head = cells;
      for (const std::string_view name : {"m", "n", "k"}) {
        if (!column(head, name))
          fail_at_line(file, number, fmt::format("column {} is missing: add it to the head", name));
      }
      if (!column(head, "tflops") && !column(head, "us"))
        fail_at_line(file, number, "there is no column of times: add tflops or us to the head");
      continue;
    }
    if (cells.size() != head.size()) {
      fail_at_line(file, number,
                   fmt::format("the row has {} cells of {}: complete it, or drop it", cells.size(), head.size()));
    }
    std::vector<std::int64_t> shape;
    for (const std::string_view name : {"m", "n", "k"}) {
      const std::string_view cell = cells[*column(head, name)];
      const auto size = whole_number<std::int64_t>(cell);
      if (!size || *size < 1)
        fail_at_line(file, number, fmt::format("{} is \"{}\": give a whole number above 0", name, cell));
      shape.push_back(*size);
    }
    const auto layout = column(head, "layout");
    shape.insert(shape.end(),
                 {1, layout ? form_of(cells[*layout], file, number) : static_cast<std::int64_t>(GemmForm::kForward)});
    const bool by_time = column(head, "us").has_value();
    const std::string_view cell = cells[*column(head, by_time ? "us" : "tflops")];
    const auto value = whole_number<double>(cell);
    if (!value || !(*value > 0))
      fail_at_line(file, number, fmt::format("{} is \"{}\": give a number above 0", by_time ? "us" : "tflops", cell));
    const double flops = kernel_call(KernelKind::kGemm, shape).flops;
    const Seconds time{by_time ? *value * kMicro : flops / (*value * kTera)};
    samples.push_back(
        {.kernel = "gemm", .shape = shape, .median = time, .fastest = time, .slowest = time, .repeats = 1});
  }
  if (samples.empty()) fail_at_line(file, 0, "the table has no rows: measure some products");
  return samples;
}

}}  // namespace plumb::planner

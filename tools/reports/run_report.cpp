#include "tools/reports/run_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the number in the middle; of an even number of them, the smaller of the two in the middle.
Seconds median_of(std::vector<Seconds> steps) {
  const auto middle = steps.begin() + (std::ssize(steps) - 1) / 2;
  std::ranges::nth_element(steps, middle);
  return *middle;
}

}  // namespace

nlohmann::ordered_json run_json(const RunResult& result) {
  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  for (const Seconds time : result.step_seconds) times.push_back(time.count());
  nlohmann::ordered_json json = {{"first_step", result.first_step},
                                 {"losses", result.losses},
                                 {"balance_losses", nullptr},
                                 {"step_times_s", times},
                                 {"peak_memory_bytes", result.peak_memory_bytes},
                                 {"peak_host_bytes", result.peak_host_bytes},
                                 {"weight_bytes", nlohmann::ordered_json::array()},
                                 {"gradient_bytes", nlohmann::ordered_json::array()},
                                 {"optimizer_bytes", nlohmann::ordered_json::array()},
                                 {"loss_scales", result.loss_scales},
                                 {"skipped_steps", result.skipped_steps}};
  const auto is_there = [](double loss) { return loss > 0; };
  if (std::ranges::any_of(result.balance_losses, is_there)) json["balance_losses"] = result.balance_losses;
  for (const ParameterBytes& bytes : result.parameter_bytes) {
    json["weight_bytes"].push_back(bytes.weights);
    json["gradient_bytes"].push_back(bytes.gradients);
    json["optimizer_bytes"].push_back(bytes.optimizer);
  }
  return json;
}

std::string run_text(std::string_view title, std::string_view device, const RunResult& result,
                     const RunResult* on_one_rank) {
  const std::vector<double>& losses = result.losses;
  std::string text = fmt::format("{}: {} steps on {}", title, losses.size(), device);
  if (losses.empty()) return text + "\n";
  text += fmt::format(", median {} a step, loss {:.4f} to {:.4f}\n\n",
                      duration_text(median_of(result.step_seconds).count()), losses.front(), losses.back());
  const std::size_t batches = losses.size() / result.step_seconds.size();
  const std::size_t first = static_cast<std::size_t>(result.first_step) * batches;
  TextTable table{.head = {"step", "loss", "step time"}};
  if (on_one_rank != nullptr) table.head.insert(table.head.begin() + 2, "on one rank");
  for (std::size_t i = 0; i < losses.size(); ++i) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {std::to_string(first + i + 1), fmt::format("{:.4f}", losses[i])};
    if (on_one_rank != nullptr) row.push_back(fmt::format("{:.4f}", on_one_rank->losses[first + i]));
    row.push_back(batches == 1 ? duration_text(result.step_seconds[i].count()) : "-");
  }
  return text + to_text(table);
}

std::string clocked_text(std::string_view title, std::string_view ranks, const std::vector<Seconds>& steps,
                         Seconds predicted) {
  std::string text = fmt::format("{}: {} steps by the clock on {}", title, steps.size(), ranks);
  if (steps.empty()) return text + "\n";
  const Seconds median = median_of(steps);
  text += fmt::format(", median {} a step, {} predicted ({:+.1f} %)\n\n", duration_text(median.count()),
                      duration_text(predicted.count()), 100 * (predicted / median - 1));
  TextTable table{.head = {"step", "step time"}};
  for (std::size_t i = 0; i < steps.size(); ++i)
    table.rows.push_back({std::to_string(i + 1), duration_text(steps[i].count())});
  return text + to_text(table);
}

}}  // namespace plumb::tools

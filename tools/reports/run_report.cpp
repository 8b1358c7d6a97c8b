#include "tools/reports/run_report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace plumb { inline namespace tools {

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

}}  // namespace plumb::tools

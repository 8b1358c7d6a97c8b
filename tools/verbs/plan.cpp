#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

std::int64_t peak_of(const Prediction& prediction) {
  return *std::ranges::max_element(prediction.peak_memory_bytes);
}

/// Returns the layout without its split, which the notes print.
std::string keys_text(Layout layout) {
  layout.split.clear();
  return to_text(layout);
}

std::string ranking_text(const PlannedQuestion& planned) {
  const bool sequences = has_sequence(planned.plans.front().model);
  TextTable table{
      .head = {"", "layout", "step time", "MFU", "bubble", sequences ? "tokens/s" : "samples/s", "peak memory"}};
  for (std::size_t i = 0; i < planned.plans.size(); ++i) {
    const Prediction& p = *planned.plans[i].prediction;
    table.rows.push_back({std::to_string(i + 1), keys_text(planned.plans[i].layout), duration_text(p.step_time.count()),
                          fmt::format("{:.1f} %", 100 * p.mfu_ratio), fmt::format("{:.1f} %", 100 * p.bubble_ratio),
                          fmt::format("{:.0f}", sequences ? p.tokens_per_second : p.samples_per_second),
                          bytes_text(static_cast<double>(peak_of(p)))});
  }
  return to_text(table);
}

std::string batch_text(const Plan& plan) {
  if (!has_sequence(plan.model)) return fmt::format("{} samples", plan.training.global_batch);
  return fmt::format("{} sequences of {} tokens", plan.training.global_batch, plan.training.sequence);
}

std::string counts_text(const SearchCounts& counts) {
  return fmt::format(
      "{} layouts considered: {} simulated, {} too large, {} could not be faster than those kept; {} kinds cannot "
      "exist "
      "(--explain names them)\n",
      counts.enumerated, counts.simulated, counts.too_large, counts.outrun, counts.conflicts);
}

std::string rejections_text(const SearchResult& search) {
  std::string text = "\nwhy the others lost:\n";
  for (const Rejection& rejection : search.rejections)
    text += fmt::format("  {}: {}\n", to_text(rejection.layout), rejection.reason);
  return text;
}

ordered_json answer_json(const PlannedQuestion& planned, bool explain) {
  const auto plan_json = [&](std::size_t i) -> ordered_json {
    const Plan& plan = planned.plans[i];
    return {{"layout", to_json(plan.layout)},
            {"prediction", to_json(*plan.prediction)},
            {"notes", planned.search.ranked[i].notes}};
  };
  const SearchCounts& c = planned.search.counts;
  ordered_json document = {{"feasible", !planned.plans.empty()}};
  document["best"] = planned.plans.empty() ? ordered_json(nullptr) : plan_json(0);
  document["ranked"] = ordered_json::array();
  for (std::size_t i = 0; i < planned.plans.size(); ++i) document["ranked"].push_back(plan_json(i));
  document["infeasible"] =
      planned.search.infeasible.empty() ? ordered_json(nullptr) : ordered_json(planned.search.infeasible);
  document["counts"] = {{"considered", c.enumerated},
                        {"simulated", c.simulated},
                        {"too_large", c.too_large},
                        {"outrun", c.outrun},
                        {"cannot_exist", c.conflicts}};
  if (explain) {
    document["rejections"] = ordered_json::array();
    for (const Rejection& rejection : planned.search.rejections) {
      document["rejections"].push_back({{"layout", to_text(rejection.layout)}, {"reason", rejection.reason}});
    }
  }
  return document;
}

}  // namespace

int plan_verb(const PlanArguments& arguments) {
  if (!arguments.output.empty()) require_writable(arguments.output);
  const PlannedQuestion planned =
      plan_question(arguments.question, {.keep = arguments.top, .explain = arguments.explain});
  if (arguments.json) print_answer(json_answer(answer_json(planned, arguments.explain)));
  if (planned.plans.empty()) {
    if (arguments.explain && !arguments.json) print_answer(rejections_text(planned.search));
    print_note(fmt::format("plumb: {}", planned.search.infeasible));
    return kInfeasible;
  }
  const Plan& best = planned.plans.front();
  if (!planned.switched.empty()) arguments.json ? print_note(planned.switched) : print_answer(planned.switched + "\n");
  if (!arguments.json) {
    print_answer(fmt::format("{} ({} parameters) on {} x {}, {} a step, {}\n\n", best.model.name,
                             parameters_text(static_cast<double>(model_parameter_count(best.model))),
                             best.cluster.devices, best.cluster.device.name, batch_text(best),
                             precision_name(best.training.precision)));
    print_answer(ranking_text(planned) + "\n" + counts_text(planned.search.counts));
    for (const std::string& note : planned.search.ranked.front().notes)
      print_answer("note on the best: " + note + "\n");
    if (arguments.explain) print_answer(rejections_text(planned.search));
  }
  if (!arguments.output.empty()) {
    write_file(arguments.output, json_answer(with_format(FileForm::kPlan, to_json(best, PLUMB_VERSION))));
    print_note(fmt::format("wrote {}", arguments.output));
  }
  return kDone;
}

}}  // namespace plumb::tools

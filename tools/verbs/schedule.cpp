#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "schedules/cost_table.h"
#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/rules.h"
#include "schedules/rules/validate.h"
#include "schedules/search/certificate.h"
#include "schedules/weight_traffic.h"
#include "simulator/simulate.h"
#include "tools/inputs/costs_file.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/terminal.h"
#include "tools/io/usage.h"
#include "tools/machine/integer_solver.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"
#include "traces/draw/draw.h"
#include "traces/draw/draw_grid.h"
#include "traces/draw/draw_svg.h"
#include "traces/draw/timeline_title.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kAnyNodes = std::numeric_limits<std::int32_t>::max();  // more than any solver looks at

void show(const std::string& picture, const std::string& output) {
  if (output.empty()) {
    print_answer(picture);
  } else {
    write_file(output, picture);
    print_note(fmt::format("wrote {}", output));
  }
}

void write_or_print(const Schedule& schedule, const std::string& output) {
  if (output.empty()) {
    print_answer(to_text(schedule));
  } else {
    write_file(output, schedule_file_text(schedule, output));
    print_note(fmt::format("wrote {}", output));
  }
}

/// Prints the schedule's defaults as a note, since the form of a schedule has no place for a title.
void note_defaults(const Schedule& schedule, const ScheduleArguments& arguments) {
  const std::string title = timeline_title(schedule);
  if (const std::string whole = titled(title, arguments); whole != title) print_note(whole);
}

ordered_json violations_json(const std::vector<Violation>& violations) {
  const auto or_null = [](int n) { return n < 0 ? ordered_json(nullptr) : ordered_json(n); };
  ordered_json list = ordered_json::array();
  for (const Violation& v : violations) {
    list.push_back({{"rank", or_null(v.rank)},
                    {"position", or_null(v.position)},
                    {"rule", rule_name(v.rule)},
                    {"message", v.message}});
  }
  return list;
}

/// Returns what is drawn: the order, and the compute actions of each rank with their times where it is valid.
ordered_json shown_json(const Schedule& order, const std::vector<Violation>& violations,
                        const std::optional<Simulation>& simulation) {
  ordered_json rows = ordered_json::array(), slices;
  for (const std::vector<Action>& actions : order.ranks) {
    std::vector<std::string> words;
    for (const Action& action : actions) words.push_back(to_text(action));
    rows.push_back(fmt::format("{}", fmt::join(words, " ")));
  }
  const auto if_valid = [&](const auto& value_of) {
    return simulation ? ordered_json(value_of(*simulation)) : nullptr;
  };
  if (simulation) {
    slices = ordered_json::array();
    for (const RankTimeline& rank : simulation->timeline.ranks) {
      ordered_json& of_rank = slices.emplace_back(ordered_json::array());
      for (const Span& span : rank.spans) {
        if (span.stream != Stream::kCompute) continue;
        of_rank.push_back(
            {{"action", to_text(span.action)}, {"start_s", seconds(span.start)}, {"end_s", seconds(span.end)}});
      }
    }
  }
  return {{"schedule", order.name},
          {"ranks", order.ranks.size()},
          {"stages", order.stages.size()},
          {"microbatches", order.microbatches},
          {"violations", violations_json(violations)},
          {"makespan_s", if_valid([](const Simulation& of) { return seconds(of.makespan); })},
          {"bubble_ratio", if_valid([](const Simulation& of) { return of.bubble_ratio; })},
          {"span_bubble_ratio", if_valid([](const Simulation& of) { return of.span_bubble_ratio; })},
          {"peak_activations", if_valid([](const Simulation& of) { return of.peak_activations; })},
          {"rows", rows},
          {"slices", slices}};
}

/// Returns what the certificate in a file says wrongly of a schedule; nothing without a file.
std::vector<std::string> faults_by(const std::string& file, const Schedule& schedule) {
  if (file.empty()) return {};
  const Certificate certificate =
      read_as(FileKind::kCertificate, file, [&file] { return parse_certificate(read_text_file(file), file); });
  const IntegerSolver solver = node_counting_solver().empty() ? IntegerSolver{} : machine_solver({.nodes = kAnyNodes});
  return certificate_faults(certificate, schedule, solver);
}

/// Returns [rank] what weight_traffic counts, or null where no weights travel.
ordered_json weight_traffic_json(const Schedule& schedule) {
  if (!weights_travel(schedule)) return nullptr;
  ordered_json ranks = ordered_json::array();
  for (const WeightTraffic& rank : weight_traffic(schedule)) {
    ranks.push_back(
        {{"weights_sent", rank.weights}, {"gradients_sent", rank.gradients}, {"most_weights_held", rank.most_held}});
  }
  return ranks;
}

/// Says how many parts' weights and gradients each rank sends, and holds, where weights travel.
void print_weight_traffic(const Schedule& schedule) {
  if (!weights_travel(schedule)) return;
  const std::vector<WeightTraffic> ranks = weight_traffic(schedule);
  const auto by_rank = [&ranks](int WeightTraffic::*number) {
    std::vector<int> numbers;
    for (const WeightTraffic& rank : ranks) numbers.push_back(rank.*number);
    return fmt::format("{}", fmt::join(numbers, " "));
  };
  print_text(fmt::format(
      "by rank, in model parts: weights sent {}; gradients sent {}; most weights of others held {}\n",
      by_rank(&WeightTraffic::weights), by_rank(&WeightTraffic::gradients), by_rank(&WeightTraffic::most_held)));
}

}  // namespace

int schedule_list_verb(const ScheduleVerbArguments& arguments) {
  if (arguments.json) {
    ordered_json list = ordered_json::array();
    for (const CatalogueEntry& e : catalogue()) {
      list.push_back({{"name", e.name},
                      {"origin", e.origin},
                      {"constraint", e.constraint},
                      {"bubble", e.bubble},
                      {"activations", e.activations},
                      {"chunks", e.takes_chunks}});
    }
    print_answer(json_answer(ordered_json{{"schedules", list}}));
    return kDone;
  }
  TextTable table{
      .head = {"name", "defined by", "demands", "bubble (F, B of a rank, free links)", "activations on rank r"}};
  for (const CatalogueEntry& e : catalogue()) {
    table.rows.push_back({std::string(e.name), std::string(e.origin), std::string(e.constraint), std::string(e.bubble),
                          std::string(e.activations)});
  }
  print_text(to_text(table));
  return kDone;
}

int schedule_make_verb(const ScheduleVerbArguments& arguments) {
  const Schedule schedule = schedule_input(arguments.schedule);
  note_defaults(schedule, arguments.schedule);
  write_or_print(
      arguments.lowered ? lowered_input(schedule, arguments.schedule) : ordered_input(schedule, arguments.schedule),
      arguments.output);
  return kDone;
}

int schedule_convert_verb(const ScheduleVerbArguments& arguments) {
  return schedule_make_verb(arguments);
}

int schedule_show_verb(const ScheduleVerbArguments& arguments) {
  const bool svg = !arguments.output.empty();
  if (svg && !arguments.output.ends_with(".svg")) {
    throw UsageError(fmt::format("{}: show draws in the terminal or as a picture: name it .svg", arguments.output));
  }
  const CostsOption costs = costs_input(arguments.costs);
  const Schedule schedule = unchecked_input(arguments.schedule, costs.chunk);
  const std::vector<Violation> violations = validate(schedule);
  const auto answer = [&](const std::optional<Simulation>& simulation, const auto& picture) {
    if (arguments.json) print_answer(json_answer(shown_json(schedule, violations, simulation)));
    if (svg || !arguments.json) show(picture(), arguments.output);
  };
  if (!violations.empty()) {
    answer({}, [&] {
      return svg ? draw_grid_svg(schedule, violations) : draw_grid(schedule, violations, terminal_draw_options());
    });
    return kInputFault;
  }
  const Schedule lowered = lowered_input(schedule, arguments.schedule);
  Simulation simulation = simulate(lowered, costs_for(costs, schedule));
  simulation.timeline.title = titled(simulation.timeline.title, arguments.schedule);
  answer(simulation,
         [&] { return svg ? draw_svg({simulation.timeline}) : draw(simulation.timeline, terminal_draw_options()); });
  return kDone;
}

int schedule_check_verb(const ScheduleVerbArguments& arguments) {
  const std::string& path = arguments.schedule.name;
  const Schedule order = unchecked_input(arguments.schedule);
  Schedule schedule = order;
  const ValidationLimits limits{.sends = sends_named(arguments.sends), .max_activations = arguments.max_activations};
  std::vector<Violation> violations = validate(schedule, {.max_activations = limits.max_activations});
  if (violations.empty()) {
    // Only a lowered schedule has messages, and so sends that can hold their rank.
    const bool lowers = limits.sends != Sends::kBuffered || adds_messages(arguments.schedule);
    schedule = lowers ? lowered_input(schedule, arguments.schedule) : ordered_input(schedule, arguments.schedule);
    violations = validate(schedule, limits);
  }
  const std::vector<std::string> faults =
      violations.empty() ? faults_by(arguments.certificate, order) : std::vector<std::string>{};
  if (arguments.json) {
    const bool verified = violations.empty() && !arguments.certificate.empty();
    print_answer(json_answer(ordered_json{{"file", path},
                                          {"valid", violations.empty()},
                                          {"violations", violations_json(violations)},
                                          {"certificate_faults", verified ? ordered_json(faults) : nullptr},
                                          {"weight_traffic", weight_traffic_json(schedule)}}));
  } else if (violations.empty()) {
    print_text(fmt::format("{}: valid: {} ranks, {} stages, {} micro-batches, {} actions\n",
                           titled(path, arguments.schedule), schedule.ranks.size(), schedule.stages.size(),
                           schedule.microbatches, action_count(schedule)));
    print_weight_traffic(schedule);
    for (const std::string& fault : faults) print_text(fmt::format("{}: {}\n", arguments.certificate, fault));
    if (faults.empty() && !arguments.certificate.empty()) {
      print_text(fmt::format("{}: its time and its bound are those of its costs\n", arguments.certificate));
    }
  } else {
    for (const Violation& violation : violations) print_text(fmt::format("{}: {}\n", path, to_text(violation)));
  }
  if (violations.size() >= Findings::kMostFindings) {
    print_note(fmt::format("of each kind of fault the first {} are named", Findings::kMostFindings));
  }
  return violations.empty() && faults.empty() ? kDone : kInputFault;
}

}}  // namespace plumb::tools

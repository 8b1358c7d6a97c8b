#include "tools/verbs/schedule_curve.h"

#include <fmt/format.h>

#include "schedules/forms/json_text.h"
#include "schedules/passes/lower.h"
#include "schedules/search/memory_curve.h"
#include "simulator/noise/robustness.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/reports/curve_report.h"

namespace plumb { inline namespace tools {

int schedule_curve(const ScheduleVerbArguments& arguments, const std::vector<SearchQuestion>& asked,
                   const SearchEffort& effort) {
  if (!arguments.search.svg.empty()) require_writable(arguments.search.svg);
  CurveAnswer answer{.objective = asked.front().question.objective, .activation_units = asked.front().activation_units};
  std::vector<OrderQuestion> questions;
  for (const SearchQuestion& one : asked) {
    questions.push_back(one.question);
    answer.placements.push_back(one.question.frame.name);
  }
  SearchEffort half = effort;
  half.timed_actions /= 2;
  answer.points = memory_curve(questions, kUsualRatios, half);
  if (answer.points.empty()) {
    print_note("plumb: no order fits: a rank cannot hold one micro-batch on its way: give the ranks more memory");
    return kInfeasible;
  }
  answer.losses = generator_losses(questions, answer.points, half);
  const auto robustness_of = [&asked](const Schedule& order, std::size_t question) {
    return robustness(lower(order), asked[question].table);
  };
  for (const CurvePoint& point : answer.points)
    answer.points_robustness.push_back(robustness_of(point.found.schedule, point.question));
  for (const GeneratorLoss& loss : answer.losses)
    answer.losses_robustness.push_back(robustness_of(loss.order, loss.question));
  if (!arguments.search.svg.empty()) {
    write_file(arguments.search.svg, curve_svg(answer));
    print_note(fmt::format("wrote {}", arguments.search.svg));
  }
  arguments.json ? print_answer(json_answer(curve_json(answer))) : print_text(curve_text(answer));
  return kDone;
}

}}  // namespace plumb::tools

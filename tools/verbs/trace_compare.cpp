#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/trace_input.h"
#include "tools/io/console.h"
#include "tools/reports/comparison_report.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"
#include "traces/compare/compare.h"

namespace plumb { inline namespace tools {
namespace {

Timeline own_timeline(const std::string& file) {
  ChromeTrace trace = trace_input(file);
  if (trace.timeline) return std::move(*trace.timeline);
  throw InputError(fmt::format("{}: this is another program's trace: `plumb compare PLAN {}` reads it", file, file));
}

}  // namespace

int trace_compare_verb(const TraceCompareArguments& arguments) {
  const Timeline first = own_timeline(arguments.first);
  const Timeline second = own_timeline(arguments.second);
  const Comparison comparison = [&] {
    try {
      return compare(first, {second});
    } catch (const InputError& error) {
      throw InputError(fmt::format("{} and {}: {}", arguments.first, arguments.second, error.what()));
    }
  }();
  if (arguments.json) {
    nlohmann::ordered_json answer{{"first", arguments.first}, {"second", arguments.second}};
    answer.update(comparison_json(comparison, {}));
    print_answer(json_answer(answer));
  } else {
    const ComparedTime& step = comparison.step;
    print_text(fmt::format("{} takes {}, and {} takes {} ({:+.1f} %)\n{} stands as predicted, {} as measured\n\n{}",
                           arguments.first, duration_text(seconds(step.predicted)), arguments.second,
                           duration_text(seconds(step.measured)),
                           100 * (seconds(step.measured) / seconds(step.predicted) - 1), arguments.first,
                           arguments.second, to_text(comparison, first)));
  }
  return kDone;
}

}}  // namespace plumb::tools

#include "planner/logs/profiler_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <istream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/logs/trace_events.h"
#include "schedules/error.h"
#include "schedules/forms/text_form.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

constexpr std::string_view kStepMark = "ProfilerStep#";
constexpr std::string_view kActionMark = "PP:";

/// A span of the trace, in nanoseconds.
struct Interval {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

struct Kernel {
  Interval time;
  ProfiledKind kind = ProfiledKind::kMemoryBound;
};

struct Marked {
  Interval time;
  Op op = Op::kForward;
};

/// Takes what is needed from the events of a trace.
class Events {
 public:
  explicit Events(std::string file) : file_(std::move(file)) {}

  void take(const json& event) {
    if (text(event, "ph") != "X") return;
    const std::string category = text(event, "cat"), name = text(event, "name");
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
      if (kernels.size() == kMostKernels)
        throw InputError(fmt::format("{}: it has more than {} kernels: profile fewer steps", file_, kMostKernels));
      kernels.push_back({time_of(event), profiled_kind(category == "kernel" ? name : "memcpy", group_of(event))});
    } else if (category == "user_annotation" && name.starts_with(kStepMark)) {
      steps.push_back(time_of(event));
    } else if (category == "gpu_user_annotation" && name.starts_with(kActionMark)) {
      take_actions(std::string_view(name).substr(kActionMark.size()), time_of(event));
    }
  }

  std::vector<Kernel> kernels;
  std::vector<Interval> steps;
  std::vector<Marked> actions;

 private:
  static std::string text(const json& object, const char* key) {
    const auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
  }

  static std::string group_of(const json& event) {
    const auto it = event.find("args");
    return it != event.end() && it->is_object() ? text(*it, "Process Group Description") : std::string();
  }

  Interval time_of(const json& event) const {
    const auto number = [&](const char* key) {
      const auto it = event.find(key);
      const double value = it != event.end() && it->is_number() ? it->get<double>() : NAN;
      if (!(std::abs(value) < 9e15))
        throw InputError(
            fmt::format("{}: an event has no time \"{}\" in microseconds: export the profile again", file_, key));
      return value;
    };
    const double start = number("ts"), duration = number("dur");
    return {std::llround(1e3 * start), std::llround(1e3 * (start + duration))};
  }

  /// Marks of other programs that begin alike are passed over.
  void take_actions(std::string_view mark, Interval time) {
    try {
      for (const Action& action : parse_row(mark, file_)) actions.push_back({time, action.op});
    } catch (const InputError&) {
    }
  }

  std::string file_;
};

Events read_events(std::istream& stream, const std::string& file) {
  Events events(file);
  try {
    if (!for_each_event(stream, [&](const json& event) { events.take(event); }))
      throw InputError(fmt::format("{}: it is no trace", file));
  } catch (const json::exception&) {
    throw InputError(fmt::format(
        "{}: it is no whole trace of PyTorch's profiler: export the profile again, and unpack it if it is compressed",
        file));
  }
  return events;
}

/// Adds the time of each kind between `window.start` and `window.end` to `sums`, kernels at the same time once; returns
/// the time in which none runs. In nanoseconds.
double sweep(std::vector<Kernel>& kernels, Interval window, std::array<double, kProfiledKindCount>& sums) {
  struct Change {
    std::int64_t at;
    ProfiledKind kind;
    int by;
  };
  std::vector<Change> changes;
  for (const Kernel& kernel : kernels) {
    const Interval inside{std::max(kernel.time.start, window.start), std::min(kernel.time.end, window.end)};
    if (inside.start >= inside.end) continue;
    changes.push_back({inside.start, kernel.kind, 1});
    changes.push_back({inside.end, kernel.kind, -1});
  }
  kernels.clear();
  std::ranges::sort(changes, std::less{}, &Change::at);
  std::array<int, kProfiledKindCount> running{};
  double idle = 0;
  std::int64_t now = window.start;
  const auto pass_to = [&](std::int64_t next) {
    const auto first = std::ranges::find_if(running, [](int count) { return count > 0; });
    const auto passed = static_cast<double>(next - now);
    (first == running.end() ? idle : sums[static_cast<std::size_t>(first - running.begin())]) += passed;
    now = next;
  };
  for (const Change& change : changes) {
    pass_to(change.at);
    running[static_cast<std::size_t>(change.kind)] += change.by;
  }
  pass_to(window.end);
  return idle;
}

}  // namespace

bool is_json_begin(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

ProfilerTrace read_profiler_trace(std::istream& stream, const std::string& file) {
  Events events = read_events(stream, file);
  if (events.steps.empty() || events.kernels.empty()) {
    throw InputError(
        fmt::format("{}: it has no {}: profile CUDA's activities and call step() of the profiler behind each step",
                    file, events.steps.empty() ? "steps" : "kernels"));
  }
  std::ranges::sort(events.steps, std::less{}, &Interval::start);
  ProfilerTrace trace;
  for (std::size_t i = 0; i < events.steps.size(); ++i) {
    const std::int64_t end = i + 1 < events.steps.size() ? events.steps[i + 1].start : events.steps[i].end;
    trace.step_seconds.push_back(1e-9 * static_cast<double>(end - events.steps[i].start));
  }
  const Interval window{events.steps.front().start, events.steps.back().end};
  const double a_step = 1e-9 / static_cast<double>(events.steps.size());
  trace.idle_seconds = a_step * sweep(events.kernels, window, trace.seconds);
  for (double& seconds : trace.seconds) seconds *= a_step;
  for (const Marked& action : events.actions)
    trace.op_seconds[action.op] += a_step * static_cast<double>(action.time.end - action.time.start);
  return trace;
}

}}  // namespace plumb::planner

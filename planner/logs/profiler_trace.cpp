#include "planner/logs/profiler_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <istream>
#include <queue>
#include <utility>

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

/// Kernels are many, so that one takes 16 bytes.
class Kernel {
 public:
  Kernel(Interval time, ProfiledKind kind)
      : start_(time.start),
        packed_((static_cast<std::uint64_t>(time.end - time.start) << kKindBits) | static_cast<std::uint64_t>(kind)) {}

  std::int64_t start() const { return start_; }
  std::int64_t end() const { return start_ + static_cast<std::int64_t>(packed_ >> kKindBits); }
  std::size_t kind() const { return packed_ & ((1U << kKindBits) - 1); }

 private:
  static constexpr unsigned kKindBits = 5;

  std::int64_t start_;
  std::uint64_t packed_;  ///< duration and kind
};
static_assert(kProfiledKindCount <= 32);

/// Takes what is needed from the events of a trace.
class Events {
 public:
  explicit Events(std::string file) : file_(std::move(file)) {}

  void take(const json& event) {
    if (text(event, "ph") != "X") return;
    const std::string category = text(event, "cat"), name = text(event, "name");
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
      const Interval time = time_of(event);
      if (time.end <= time.start) return;
      require_fewer(kernels.size(), kMostKernels, "kernels");
      const ProfiledKind kind = profiled_kind(category == "kernel" ? name : "memcpy", group_of(event));
      kernels.emplace_back(time, kind);
    } else if (category == "user_annotation" && name.starts_with(kStepMark)) {
      require_fewer(steps.size(), kMostSteps, "steps");
      steps.push_back(time_of(event));
    } else if (category == "gpu_user_annotation" && name.starts_with(kActionMark)) {
      take_actions(std::string_view(name).substr(kActionMark.size()), time_of(event));
    }
  }

  std::vector<Kernel> kernels;
  std::vector<Interval> steps;
  std::map<Op, std::int64_t> actions;  ///< nanoseconds of all of them

 private:
  void require_fewer(std::size_t count, std::size_t most, const char* what) const {
    if (count == most)
      throw InputError(fmt::format("{}: it has more than {} {}: profile fewer steps", file_, most, what));
  }

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
      for (const Action& action : parse_row(mark, file_)) actions[action.op] += time.end - time.start;
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
/// the time in which none runs. In nanoseconds. Sorts the kernels.
double sweep(std::vector<Kernel>& kernels, Interval window, std::array<double, kProfiledKindCount>& sums) {
  std::ranges::sort(kernels, std::less{}, &Kernel::start);
  using End = std::pair<std::int64_t, std::size_t>;  // time, kind
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::array<int, kProfiledKindCount> running{};
  double idle = 0;
  std::int64_t now = window.start;
  const auto pass_to = [&](std::int64_t time) {
    const std::int64_t next = std::clamp(time, now, window.end);
    const auto first = std::ranges::find_if(running, [](int count) { return count > 0; });
    const auto passed = static_cast<double>(next - now);
    (first == running.end() ? idle : sums[static_cast<std::size_t>(first - running.begin())]) += passed;
    now = next;
  };
  const auto end_kernels_before = [&](std::int64_t time) {
    for (; !ends.empty() && ends.top().first <= time; ends.pop()) {
      pass_to(ends.top().first);
      --running[ends.top().second];
    }
  };
  for (const Kernel& kernel : kernels) {
    if (kernel.end() <= window.start || kernel.start() >= window.end) continue;
    end_kernels_before(kernel.start());
    pass_to(kernel.start());
    ++running[kernel.kind()];
    ends.emplace(kernel.end(), kernel.kind());
  }
  end_kernels_before(window.end);
  pass_to(window.end);
  return idle;
}

}  // namespace

bool is_json_begin(std::string_view text) {
  constexpr const char* kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) return false;
  const std::size_t second = text.find_first_not_of(kBlanks, first + 1);
  if (second == std::string_view::npos) return true;
  return text[second] == (text[first] == '{' ? '"' : '{') || text[second] == (text[first] == '{' ? '}' : ']');
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
  for (const auto& [op, nanoseconds] : events.actions) trace.op_seconds[op] = a_step * static_cast<double>(nanoseconds);
  return trace;
}

}}  // namespace plumb::planner

#include "planner/logs/scope_trace.h"

#include <cmath>
#include <istream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/logs/sampled_values.h"
#include "planner/logs/timed_ops.h"
#include "planner/logs/trace_events.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

constexpr std::string_view kStepScope = "iteration";

/// Adds up the scopes of one step after the other.
class Scopes {
 public:
  explicit Scopes(std::string file) : file_(std::move(file)) {}

  void take(const json& record) {
    const auto text = [&](const char* key) { return record.value(key, std::string()); };
    const std::string name = text("name"), phase = text("ph");
    if (phase != "B" && phase != "E") return;
    if (name == kStepScope) return phase == "B" ? begin_step() : end_step(nanoseconds(record, "duration_wall"));
    if (!in_step_ || timed_ops(name).empty()) return;
    const double time = nanoseconds(record, "rel_ts");
    Open& open = open_[name];
    if (phase == "B") {
      if (open.depth++ == 0) open.since = time;
      return;
    }
    if (open.depth == 0) refuse(fmt::format("scope {} ends without a begin", name));
    if (--open.depth == 0) step_scopes_[name] += 1e-9 * (time - open.since);
  }

  ScopeTrace finish() const {
    if (in_step_) refuse("it ends inside a step");
    if (steps_.count() == 0) refuse("it has no step");
    ScopeTrace trace{.step_seconds = steps_.kept(), .scope_seconds = {}};
    if (steps_.count() == 1) {
      trace.scope_seconds = first_scopes_;
      return trace;
    }
    trace.step_seconds.erase(trace.step_seconds.begin());
    for (const auto& [name, seconds] : later_scopes_)
      trace.scope_seconds[name] = seconds / static_cast<double>(steps_.count() - 1);
    return trace;
  }

 private:
  struct Open {
    int depth = 0;
    double since = 0;  ///< nanoseconds
  };

  void begin_step() {
    if (in_step_) refuse("a step begins inside another");
    in_step_ = true;
    step_scopes_.clear();
  }

  void end_step(double duration) {
    if (!in_step_) refuse("a step ends without a begin");
    for (const auto& [name, open] : open_) {
      if (open.depth > 0) refuse(fmt::format("scope {} has no end in its step", name));
    }
    in_step_ = false;
    if (steps_.count() == 0)
      first_scopes_ = step_scopes_;
    else
      for (const auto& [name, seconds] : step_scopes_) later_scopes_[name] += seconds;
    steps_.add(1e-9 * duration);
  }

  double nanoseconds(const json& record, const char* key) const {
    const auto it = record.find(key);
    const double value = it != record.end() && it->is_number() ? it->get<double>() : NAN;
    if (!(std::abs(value) < 9e18)) refuse(fmt::format("a record has no \"{}\" in nanoseconds", key));
    return value;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(fmt::format("{}: {}: give a rank's whole file of Megatron's --trace", file_, what));
  }

  std::string file_;
  bool in_step_ = false;
  std::map<std::string, Open> open_;
  std::map<std::string, double> step_scopes_;
  std::map<std::string, double> first_scopes_;  ///< of the first step, which warms up
  std::map<std::string, double> later_scopes_;  ///< sums over all others
  SampledValues steps_;                         ///< seconds
};

}  // namespace

bool is_scope_trace_begin(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '[') return false;
  const std::string_view record = text.substr(first, text.find('}', first));
  return record.find("\"pad_before\"") != std::string_view::npos || record.find("\"rel_ts\"") != std::string_view::npos;
}

ScopeTrace read_scope_trace(std::istream& stream, const std::string& file) {
  Scopes scopes(file);
  try {
    for_each_event(stream, [&](const json& record) { scopes.take(record); });
  } catch (const json::exception&) {
    throw InputError(
        fmt::format("{}: it is cut short or damaged: give a rank's whole file of Megatron's --trace", file));
  }
  return scopes.finish();
}

}}  // namespace plumb::planner

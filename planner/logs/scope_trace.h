#pragma once
// The pipeline's timeline of one rank as a fork of Megatron-LM writes it by --trace (MegaLens; MegaScan of MegatronApp).
//
//   const ScopeTrace trace = read_scope_trace(stream, "benchmark-data-0-pipeline-1-tensor-0.json");
//   trace.scope_seconds.at("forward-step")          // a step's mean
//
// The file is an array of records. A scope begins with "ph": "B" and ends with "E", its time "rel_ts" counts
// nanoseconds. The scopes of a step stand between the begin and the end of the scope "iteration", whose end has the
// step's "duration_wall". The file is read as a stream.
//
// Source: flagos-ai/Megatron-LM-FL megatron/megalens, OpenSQZ/MegatronApp megatron/training/trace.py.

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

struct ScopeTrace {
  std::vector<double> step_seconds;  ///< [step]
  /// [name] a step's mean of the scopes that span operations of a schedule (logs/timed_ops.h). A scope inside one of its
  /// name does not count again.
  std::map<std::string, double> scope_seconds;
};

/// Returns true if the text begins as such a file does.
bool is_scope_trace_begin(std::string_view text);

/// Returns the trace without its first step where it has more: that one warms up. Throws InputError "FILE: ..." if the
/// stream is no such file or is cut short, if it has no step, or if a scope has no begin, no end or no time.
ScopeTrace read_scope_trace(std::istream& stream, const std::string& file);

}}  // namespace plumb::planner

#include "tools/runs/cpu_run.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "executor/mpi/run_mpi.h"
#include "executor/transport/mpi/launched.h"
#include "schedules/error.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/progress.h"
#include "tools/io/usage.h"
#include "traces/chrome/chrome_trace.h"

namespace plumb { inline namespace tools {
namespace {

std::string own_path(const std::string& trace) {
  if (launched_ranks() <= 1) return trace;
  const std::filesystem::path path(trace);
  const std::string name = fmt::format("{}.rank{}{}", path.stem().string(), launched_rank(), path.extension().string());
  return (path.parent_path() / name).string();
}

}  // namespace

InterruptionListener interrupted_trace(const std::string& trace) {
  if (trace.empty()) return {};
  return [path = own_path(trace)](const Timeline& timeline) {
    try {
      write_file(path, [&](const TextSink& take) { write_chrome_trace(timeline, take); });
      print_note(fmt::format("wrote {}: the step that was interrupted", path));
    } catch (const InputError& error) {
      print_note(error.what());  // the failure of the run is thrown; this one only adds a note
    }
  };
}

RankThreadsOptions watched_threads() {
  return {.stuck = [](const std::string& reason) {
    print_note(fmt::format("plumb: {}", reason));
    print_note("another rank hangs and does not end: it is left behind");
    std::_Exit(kInputFault);
  }};
}

std::optional<RunResult> run_on_cpu(const RunSpec& spec, RunOptions options, Seconds expected) {
  if (launched_ranks() > 1) return run_mpi(spec, options);
  options.threads = watched_threads();
  return with_progress("running", expected, [&] { return run(spec, options); });
}

}}  // namespace plumb::tools

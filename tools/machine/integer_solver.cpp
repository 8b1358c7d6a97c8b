#include "tools/machine/integer_solver.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <unistd.h>

#include <fmt/format.h>

#include "tools/machine/run_program.h"

namespace plumb { inline namespace tools {
namespace {

/// The files of a program: itself, its solution, and options of HiGHS.
struct ProgramFiles {
  std::string program;
  std::string solution;
  std::string options;
};

/// Returns the words that run each solver on a program, and write what it found.
std::vector<std::vector<std::string>> commands(const ProgramFiles& files, const SolverLimits& limits) {
  const std::string seconds = fmt::format("{}", static_cast<int>(limits.patience.count()));
  if (limits.nodes == 0) {
    return {{"cbc", files.program, "sec", seconds, "solve", "solution", files.solution},
            {"highs", "--time_limit", seconds, "--solution_file", files.solution, files.program},
            {"glpsol", "--lp", files.program, "--tmlim", seconds, "--output", files.solution}};
  }
  const std::string nodes = fmt::format("{}", limits.nodes);
  return {{"cbc", files.program, "sec", seconds, "maxNodes", nodes, "ratioGap", "0", "allowableGap", "0", "solve",
           "solution", files.solution},
          {"highs", "--options_file", files.options, "--time_limit", seconds, "--solution_file", files.solution,
           files.program}};
}

/// Returns the contents of a file, empty if there is none.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

IntegerSolver machine_solver(const SolverLimits& limits) {
  return [limits](const std::string& program) -> std::optional<SolverAnswer> {
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const std::string file = (folder / fmt::format("plumb-{}.lp", getpid())).string();
    const ProgramFiles files{.program = file, .solution = file + ".solution", .options = file + ".options"};
    std::ofstream(files.program) << program;
    std::ofstream(files.options) << fmt::format("mip_max_nodes = {}\nmip_rel_gap = 0\nthreads = 1\n", limits.nodes);
    std::optional<SolverAnswer> answer;
    for (const std::vector<std::string>& words : commands(files, limits)) {
      const ProgramAnswer ran = run_program(words, 2 * limits.patience);
      const std::string found = text_of(files.solution);
      if (ran.why.empty() && !found.empty()) answer = {.solver = words.front(), .text = found, .log = ran.text};
      if (answer) break;
    }
    std::error_code fault;
    for (const std::string& written : {files.program, files.solution, files.options}) {
      std::filesystem::remove(written, fault);
    }
    return answer;
  };
}

std::string node_counting_solver() {
  const char* const path = std::getenv("PATH");
  for (const char* const solver : {"cbc", "highs"}) {
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (access((std::filesystem::path(folder) / solver).c_str(), X_OK) == 0) return solver;
    }
  }
  return {};
}

}}  // namespace plumb::tools

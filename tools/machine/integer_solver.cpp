#include "tools/machine/integer_solver.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include <fmt/format.h>

#include "tools/machine/run_program.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the words that run each solver on a program, and write what it found.
std::vector<std::vector<std::string>> commands(const std::string& program, const std::string& solution, int seconds) {
  const std::string limit = fmt::format("{}", seconds);
  return {{"cbc", program, "sec", limit, "solve", "solution", solution},
          {"highs", "--time_limit", limit, "--solution_file", solution, program},
          {"glpsol", "--lp", program, "--tmlim", limit, "--output", solution}};
}

/// Returns the contents of a file, empty if there is none.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

IntegerSolver machine_solver(Seconds patience) {
  return [patience](const std::string& program) -> std::optional<SolverAnswer> {
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const std::string file = (folder / fmt::format("plumb-{}.lp", getpid())).string(), solution = file + ".solution";
    std::ofstream(file) << program;
    std::optional<SolverAnswer> answer;
    const int seconds = static_cast<int>(patience.count());
    for (const std::vector<std::string>& words : commands(file, solution, seconds)) {
      const ProgramAnswer ran = run_program(words, 2 * patience);
      const std::string found = text_of(solution);
      if (ran.why.empty() && !found.empty()) answer = {.solver = words.front(), .text = found, .log = ran.text};
      if (answer) break;
    }
    std::error_code fault;
    std::filesystem::remove(file, fault);
    std::filesystem::remove(solution, fault);
    return answer;
  };
}

}}  // namespace plumb::tools

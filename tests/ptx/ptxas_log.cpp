#include "tests/ptx/ptxas_log.h"

#include <charconv>

namespace plumb::test::ptx {
namespace {

/// Returns the number that stands ahead of `words`, or 0.
int number_ahead_of(std::string_view line, std::string_view words) {
  const std::size_t end = line.find(words);
  if (end == std::string_view::npos) return 0;
  const std::size_t begin = line.find_last_not_of("0123456789", end - 1) + 1;
  int number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

}  // namespace

std::map<std::string, PtxasFigures, std::less<>> ptxas_figures(std::string_view log) {
  std::map<std::string, PtxasFigures, std::less<>> figures;
  PtxasFigures* current = nullptr;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    constexpr std::string_view kBegin = "Compiling entry function '";
    if (const std::size_t at = line.find(kBegin); at != std::string_view::npos) {
      const std::string_view name = line.substr(at + kBegin.size());
      current = &figures[std::string(name.substr(0, name.find('\'')))];
    }
    if (current == nullptr) continue;
    current->registers += number_ahead_of(line, " registers");
    current->spilled_bytes +=
        number_ahead_of(line, " bytes spill stores") + number_ahead_of(line, " bytes spill loads");
  }
  return figures;
}

}  // namespace plumb::test::ptx

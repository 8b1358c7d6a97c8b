#include "tests/ptx/machine/report.h"

#include <algorithm>

#include <fmt/format.h>

namespace plumb::test::ptx {

void Report::add(FaultKind kind, const Instruction& in, std::uint32_t block, std::uint32_t thread,
                 const std::string& what) {
  const auto is_same = [&](const Fault& fault) { return fault.kind == kind && fault.line == in.line; };
  if (std::ranges::any_of(faults_, is_same)) return;
  faults_.push_back(
      {kind, kernel_, in.line,
       fmt::format("\"{}\" at line {}: thread {} of block {} {}", in.text, in.line, thread, block, what)});
}

}  // namespace plumb::test::ptx

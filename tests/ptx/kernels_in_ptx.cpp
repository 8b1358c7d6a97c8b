// Runs the PTX of every kernel in an interpreter, on the cases of tests/gpu/kernels_on_gpu.cpp, and compares the
// results with the host's. Whatever the interpreter reports is a failure too.
//
//   kernels_in_ptx PTX [TRIES [SEED [NAME]]]
//
// TRIES of every kernel in every format (default: 1), a SEED (default: random), and a part of the NAMES of the cases
// to try (default: all). Exit 0: all agree up to rounding, and nothing is reported; 1: some do not; 77: no PTX is
// given, since the build made none.

#include <cstdlib>
#include <memory>
#include <random>
#include <ranges>
#include <string>

#include <fmt/format.h>

#include "tests/executor/kernels/kernel_comparison.h"
#include "tests/executor/machines/host_machine.h"
#include "tests/ptx/interpreted_kernels.h"
#include "tests/ptx/kernel_names.h"
#include "tests/ptx/text_file.h"

namespace plumb::test { namespace {

/// Returns the first faults of the kernels that have run since the last time.
std::string faults_of(ptx::Interpreter& interpreter) {
  constexpr std::size_t kShown = 3;
  const ptx::Report report = interpreter.take_report();
  std::string text;
  for (const ptx::Fault& fault : report.faults() | std::views::take(kShown))
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", demangled(fault.kernel), fault.text);
  if (report.faults().size() > kShown) text += fmt::format("; and {} more", report.faults().size() - kShown);
  return text;
}

constexpr int kMultiprocessors = 1;  // so that elementwise bodies loop

TestedMachine machine_for(std::optional<HalfFormat> half, ptx::Interpreter& interpreter) {
  const auto make = [half, &interpreter](HostEnqueue enqueue) {
    return make_interpreted_kernels(half, std::move(enqueue), interpreter, kMultiprocessors);
  };
  return {.machine = std::make_unique<HostMachine>(make),
          .show =
              [&interpreter](const std::vector<std::span<std::byte>>& tensors) {
                interpreter.memory().clear();
                for (const std::span<std::byte> tensor : tensors) interpreter.memory().add(tensor);
              },
          .faults = [&interpreter] { return faults_of(interpreter); }};
}

int run(const char* path, const ComparisonOptions& options) {
  ptx::Interpreter interpreter(text_of_file(path));
  interpreter.decode_all();
  fmt::print("{} kernels of {}\n", interpreter.module().entries().size(), path);
  return compare_with_host([&](std::optional<HalfFormat> half) { return machine_for(half, interpreter); }, options);
}

}}  // namespace plumb::test

constexpr int kNoPtx = 77;

int main(int count, char** arguments) {
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(arguments[i], nullptr, 10)); };
  if (count < 2) {
    fmt::print("skipped: the build made no PTX of the kernels (it has no nvcc, or sanitizers)\n");
    return kNoPtx;
  }
  plumb::test::ComparisonOptions options{.tries = 1, .seed = std::random_device()()};
  if (count > 2) options.tries = number(2);
  if (count > 3) options.seed = number(3);
  if (count > 4) options.only = arguments[4];
  try {
    return plumb::test::run(arguments[1], options);
  } catch (const plumb::test::ptx::PtxError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

#pragma once
// Runs kernels of a PTX module on the host, and reports what is wrong with them.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/global_memory.h"
#include "tests/ptx/machine/report.h"
#include "tests/ptx/machine/work.h"
#include "tests/ptx/read/module.h"

namespace plumb::test::ptx {

/// The work of a kernel that has run.
struct LaunchedWork {
  std::string kernel;
  LaunchSize size;
  Work work;
  std::vector<std::int64_t> issued;  ///< of each block
  std::vector<BlockPhases> phases;   ///< of each block
};

class Interpreter {
 public:
  /// `text`: what `nvcc -ptx` writes. Throws PtxError if it cannot be read.
  explicit Interpreter(std::string text, bool counts_work = false)
      : module_(std::move(text)), counts_work_(counts_work) {}

  /// Runs a grid, block after block, whose threads may touch the buffers of memory() alone. parameters: the
  /// bytes of all parameters, as a launch passes them. Throws PtxError if there is no such kernel, if the
  /// parameters have another size, or if an instruction of the kernel is not known. A kernel that cannot go
  /// on after a fault ends early.
  void launch(std::string_view kernel, const LaunchSize& size, std::span<const std::byte> parameters);

  /// Decodes all kernels. Throws PtxError if an instruction is not known.
  void decode_all();

  const Module& module() const { return module_; }
  GlobalMemory& memory() { return memory_; }
  const Report& report() const { return report_; }
  /// Returns what has been reported, and begins a new report.
  Report take_report() { return std::exchange(report_, {}); }
  /// Returns the work of the kernels that have run since the last time, if it is counted.
  std::vector<LaunchedWork> take_work() { return std::exchange(work_, {}); }

 private:
  const Program& program_of(std::string_view kernel);

  Module module_;
  bool counts_work_;
  std::map<std::string_view, Program> programs_;  // that have been decoded
  GlobalMemory memory_;
  Report report_;
  std::vector<LaunchedWork> work_;
};

}  // namespace plumb::test::ptx

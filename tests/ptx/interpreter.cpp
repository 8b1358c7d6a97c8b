#include "tests/ptx/interpreter.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "tests/ptx/decode/decode.h"

namespace plumb::test::ptx {

const Program& Interpreter::program_of(std::string_view kernel) {
  if (const auto found = programs_.find(kernel); found != programs_.end()) return found->second;
  const auto entry = std::ranges::find(module_.entries(), kernel, &Entry::name);
  if (entry == module_.entries().end()) throw PtxError(fmt::format("the module has no kernel {}", kernel));
  return programs_.emplace(entry->name, decode(module_, *entry)).first->second;
}

void Interpreter::decode_all() {
  for (const Entry& entry : module_.entries()) program_of(entry.name);
}

void Interpreter::launch(std::string_view kernel, const LaunchSize& size, std::span<const std::byte> parameters) {
  const Program& program = program_of(kernel);
  if (std::ssize(parameters) != program.parameter_bytes)
    throw PtxError(
        fmt::format("{} has {} bytes of parameters and not {}", kernel, program.parameter_bytes, parameters.size()));
  if (std::uint64_t{size.blocks} * size.threads > std::numeric_limits<std::uint32_t>::max())
    throw PtxError(
        fmt::format("{} has {} blocks of {} threads, which are too many", kernel, size.blocks, size.threads));
  report_.begin(kernel);
  memory_.forget_accesses();
  AccessLog shared_log(program.static_shared_bytes + size.shared_bytes);
  Work work;
  std::vector<std::int64_t> issued;
  std::vector<BlockPhases> phases;
  const LaunchMemory memory{.parameters = parameters,
                            .global = &memory_,
                            .shared_log = &shared_log,
                            .report = &report_,
                            .work = counts_work_ ? &work : nullptr};
  try {
    for (std::uint32_t block = 0; block < size.blocks; ++block) {
      const std::int64_t before = work.issued;
      Block own(program, size, memory, block);
      own.run();
      if (!counts_work_) continue;
      issued.push_back(work.issued - before);
      phases.push_back(own.take_phases());
    }
  } catch (const StoppedKernel&) {
    return;  // the report has the fault
  }
  if (!counts_work_) return;
  work.memory_bytes = memory_.touched_bytes();
  work_.push_back({std::string(kernel), size, work, std::move(issued), std::move(phases)});
}

}  // namespace plumb::test::ptx

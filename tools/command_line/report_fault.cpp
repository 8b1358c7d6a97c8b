#include "tools/command_line/report_fault.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "executor/transport/mpi/joined.h"
#include "executor/transport/mpi/launched.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

int report_fault(const std::exception& error) {
  constexpr std::chrono::milliseconds kForTheFirstToSpeak{500};
  const int code = dynamic_cast<const UsageError*>(&error) != nullptr ? kUsage : kInputFault;
  const bool is_known = dynamic_cast<const RunAborted*>(&error) != nullptr;  // the process that failed has printed it
  const bool all_see_it =
      dynamic_cast<const InputError*>(&error) != nullptr && dynamic_cast<const RunError*>(&error) == nullptr;
  const bool speaks = !is_known && (launched_rank() == 0 || !all_see_it);
  if (speaks) print_note(fmt::format("plumb: {}", sentence_of(error)));
  if (has_joined_mpi()) {
    if (!speaks) std::this_thread::sleep_for(kForTheFirstToSpeak);
    stop_mpi_ranks(code);
  }
  return code;
}

}}  // namespace plumb::tools

#include "tools/verbs/calibrate/calibrate_gpus.h"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cuda_library/open_cuda_library.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"
#include "tools/reports/table.h"
#include "tools/runs/cuda_run.h"

namespace plumb { inline namespace tools {

int calibrate_gpus(const CalibrateArguments& arguments) {
  if (!arguments.output.empty() || !arguments.from.empty() || !arguments.base.empty() || !arguments.plan.empty())
    throw UsageError("--only gpus says what is here and makes no file: leave --output, --from, --base and --plan away");
  const std::vector<CudaDevice> found = cuda_devices(open_cuda());
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  TextTable table{.head = {"GPU", "name", "capability", "SMs", "memory", "CUDA of the driver"}};
  for (const CudaDevice& device : found) {
    const std::string capability = fmt::format("{}.{}", device.major, device.minor);
    table.rows.push_back({std::to_string(rows.size()), device.name, capability, std::to_string(device.multiprocessors),
                          fmt::format("{:.1f} GiB", static_cast<double>(device.memory_bytes) / (1 << 30)),
                          device.driver});
    rows.push_back({{"index", rows.size()},
                    {"name", device.name},
                    {"compute_capability", capability},
                    {"multiprocessors", device.multiprocessors},
                    {"memory_bytes", device.memory_bytes},
                    {"driver_cuda", device.driver}});
  }
  arguments.json ? print_answer(json_answer(nlohmann::ordered_json{{"gpus", rows}})) : print_text(to_text(table));
  return kDone;
}

}}  // namespace plumb::tools

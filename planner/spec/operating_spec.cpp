#include "planner/spec/operating_spec.h"

#include <fmt/format.h>

namespace plumb { inline namespace planner {

OperatingSpec read_operation(StrictObject object) {
  OperatingSpec operation;
  if (object.has("usd_per_device_hour")) operation.usd_per_device_hour = object.positive_number("usd_per_device_hour");
  if (object.has("idle_w") || object.has("busy_w")) {
    operation.idle_watts = object.non_negative_number("idle_w");
    operation.busy_watts = object.positive_number("busy_w");
    if (*operation.idle_watts > *operation.busy_watts)
      object.fail("idle_w", fmt::format("an idle device draws {} W and a busy one {} W: give the larger one as busy_w",
                                        *operation.idle_watts, *operation.busy_watts));
  }
  if (object.has("pue")) operation.pue = object.positive_number("pue");
  if (operation.pue < 1) object.fail("pue", "a site draws what its machines draw or more: give 1 or more");
  object.finish();
  return operation;
}

double step_usd(const OperatingSpec& operation, int devices, Seconds step) {
  constexpr double kSecondsPerHour = 3600;
  return *operation.usd_per_device_hour / kSecondsPerHour * devices * step.count();
}

double step_joules(const OperatingSpec& operation, int devices, Seconds step, Seconds busy) {
  const double idle = *operation.idle_watts;
  return operation.pue * devices * (idle * step.count() + (*operation.busy_watts - idle) * busy.count());
}

}}  // namespace plumb::planner

#pragma once
// The first line that `plumb validate` prints says whether a prediction held when its schedule ran.

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tools/machine/machine_speed.h"
#include "traces/compare/compare.h"

namespace plumb { inline namespace tools {

enum class Outcome : std::uint8_t {
  kPass,       ///< the step time and every rank's peak memory are within the tolerance
  kFail,       ///< one of them is not
  kDisturbed,  ///< the step time is not, and the machine was not itself: the run decides nothing
};

struct Verdict {
  Outcome outcome = Outcome::kPass;
  std::string why;  ///< a sentence without its full stop, after "PASS: "
};

/// Returns the verdict of a comparison. A machine counts as disturbed if other programs or its host took a tenth of a
/// core or more, if its speed before or after the run was off the calibrated one by more than the tolerance, or if the
/// interval of the median step is wider than the tolerance. `predicted` names the stages. `tolerance_pct`: percent.
Verdict verdict_of(const Comparison& comparison, const Timeline& predicted, const MachineState& machine,
                   double tolerance_pct);

/// Returns "PASS: ...", "FAIL: ..." or "DISTURBED: ...".
std::string to_text(const Verdict& verdict);

/// Returns {"outcome": "pass" | "fail" | "disturbed", "why", "tolerance_pct"}.
nlohmann::ordered_json to_json(const Verdict& verdict, double tolerance_pct);

}}  // namespace plumb::tools

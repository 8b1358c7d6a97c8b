#pragma once
// `plumb calibrate --only transport`.

#include <string>

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Times single messages between two threads, or, where mpirun or srun has started several processes, over the network
/// between the first two; fits a link to them and writes it to a file for --link. Throws SpecError for options of the
/// other calibrations, InputError if the file cannot be written.
int calibrate_transport(const CalibrateArguments& arguments, const std::string& date);

}}  // namespace plumb::tools

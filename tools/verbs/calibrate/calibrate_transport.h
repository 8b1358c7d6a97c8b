#pragma once
// `plumb calibrate --only transport` measures messages.

#include <string>

#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Times single messages between two threads, or over the network between the first two processes where mpirun or srun
/// has started several. Fits a link to them and writes it to a file for --link, or into the cluster of --base. Throws
/// UsageError for options of the other calibrations, and InputError if the file cannot be written.
int calibrate_transport(const CalibrateArguments& arguments, const std::string& date);

}}  // namespace plumb::tools

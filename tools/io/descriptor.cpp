#include "tools/io/descriptor.h"

#include <unistd.h>

#include <cstring>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace tools {

void fail_of_system(const std::string& path, std::string_view what, int error) {
  throw InputError(fmt::format("{}: {} ({})", path, what, std::strerror(error)));
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

}}  // namespace plumb::tools

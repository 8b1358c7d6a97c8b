#include "tools/io/version.h"

#include <fmt/format.h>

namespace plumb { inline namespace tools {

std::string version_text() {
  // PLUMB_HAS_* come from the build (tools/meson.build).
  const auto part = [](bool has, std::string_view name, std::string_view remedy) {
    return fmt::format("\n  {:5} {}", name, has ? "built in" : fmt::format("not built in ({})", remedy));
  };
  return fmt::format("plumb {}", PLUMB_VERSION) + part(PLUMB_HAS_CUDA, "CUDA", "meson configure -Dcuda=enabled") +
         part(PLUMB_HAS_NCCL, "NCCL", "needs CUDA and libnccl-dev") +
         part(PLUMB_HAS_MPI, "MPI", "meson configure -Dmpi=enabled");
}

}}  // namespace plumb::tools

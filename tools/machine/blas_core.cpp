#include "tools/machine/blas_core.h"

#include <unistd.h>

#include <cstdlib>

#include "kernels/cpu/products/gemm.h"

namespace plumb { inline namespace tools {

void restart_with_better_blas_core(char** argv) {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (std::getenv(kVariable) != nullptr) return;
  const std::optional<std::string> core = better_blas_core();
  if (!core || setenv(kVariable, core->c_str(), 1) != 0) return;
  execv("/proc/self/exe", argv);  // returns only if it fails; then the slow kernels are used
}

}}  // namespace plumb::tools

#include "tools/machine/open_blas.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/products/gemm.h"
#include "schedules/error.h"

namespace plumb { inline namespace tools {
namespace {

std::optional<std::string> better_core() {
  try {
    use_one_blas_thread();
    return better_blas_core();
  } catch (const std::runtime_error& error) {
    throw InputError(error.what());
  }
}

}  // namespace

void open_blas() {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  const std::optional<std::string> core = better_core();
  if (!core || std::getenv(kVariable) != nullptr || setenv(kVariable, core->c_str(), 1) != 0) return;
  std::vector<std::string> words;
  std::ifstream command("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(command, word, '\0');) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());  // comes back only if it fails; then the slow kernels serve
}

}}  // namespace plumb::tools

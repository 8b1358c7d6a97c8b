#include "executor/device/open_cuda_library.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace plumb::test {
namespace {

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

TEST_CASE(
    "CUDA gets a hardware queue for each stream, and code that is loaded at once where ranks meet, but the user "
    "decides") {
  for (const char* variable : {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING"}) unsetenv(variable);
  set_cuda_environment(false);
  CHECK(value_of("CUDA_DEVICE_MAX_CONNECTIONS") == "32");
  CHECK(value_of("CUDA_MODULE_LOADING") == "");
  set_cuda_environment(true);
  CHECK(value_of("CUDA_MODULE_LOADING") == "EAGER");
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  set_cuda_environment(true);
  CHECK(value_of("CUDA_DEVICE_MAX_CONNECTIONS") == "4");
  CHECK(value_of("CUDA_MODULE_LOADING") == "LAZY");
  for (const char* variable : {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING"}) unsetenv(variable);
}

}  // namespace plumb::test

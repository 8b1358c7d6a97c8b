#include "executor/cuda_library/open_cuda_library.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace plumb::test {
namespace {

constexpr std::array kCudaVariables = {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING",
                                       "NCCL_LAUNCH_ORDER_IMPLICIT"};

/// Returns the values of the variables, each with a space behind it.
std::string values() {
  std::string text;
  for (const char* variable : kCudaVariables) {
    const char* value = std::getenv(variable);
    text += std::string(value == nullptr ? "none" : value) + " ";
  }
  return text;
}

void unset() {
  for (const char* variable : kCudaVariables) unsetenv(variable);
}

}  // namespace

TEST_CASE("CUDA and NCCL are set for streams that wait for other ranks, where the user has not set them") {
  unset();
  set_cuda_environment(false);
  CHECK(values() == "32 none none ");
  set_cuda_environment(true);
  CHECK(values() == "32 EAGER 1 ");
  for (const char* variable : kCudaVariables) setenv(variable, "0", 1);
  set_cuda_environment(true);
  CHECK(values() == "0 0 0 ");
  unset();
}

}  // namespace plumb::test

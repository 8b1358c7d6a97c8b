#include "executor/transport/nccl/joined_communicators.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

namespace plumb::test {

TEST_CASE("NCCL's buffers count by block, neighbour and protocol, for the communicators of a rank") {
  constexpr std::int64_t kOfBlock = (std::int64_t{4} << 20) + 4'915'200 + 524'288;  // Simple, LL128, LL
  const std::vector<CommunicatorRanks> all = {
      {.name = "activations", .ranks = {0, 1}, .is_channel = true},
      {.name = "activations", .ranks = {1, 2}, .is_channel = true},
      {.name = "replicas", .ranks = {0, 3}},
  };
  CHECK(nccl_buffer_bytes(all, 1) == 2 * 8 * kOfBlock);
  CHECK(nccl_buffer_bytes(all, 0) == (8 + 2 * 24) * kOfBlock);
  setenv("NCCL_MAX_CTAS", "2", 1);
  setenv("NCCL_BUFFSIZE", "1048576", 1);
  CHECK(nccl_buffer_bytes(all, 0) == (2 + 2 * 2) * (kOfBlock - (3 << 20)));
  unsetenv("NCCL_MAX_CTAS");
  unsetenv("NCCL_BUFFSIZE");
}

}  // namespace plumb::test

#include "tests/ptx/machine/work.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tests/ptx/machine/warp.h"

namespace plumb::test::ptx {
namespace {

/// Units by the beginning of an opcode.
constexpr std::array<std::pair<std::string_view, Unit>, 22> kUnits = {{
    {"add.", Unit::kFp32},
    {"sub.", Unit::kFp32},
    {"fma.", Unit::kFp32},
    {"ex2.", Unit::kSpecial},
    {"lg2.", Unit::kSpecial},
    {"rcp.", Unit::kSpecial},
    {"rsqrt.", Unit::kSpecial},
    {"sqrt.", Unit::kSpecial},
    {"div.", Unit::kSpecial},
    {"sin.", Unit::kSpecial},
    {"cos.", Unit::kSpecial},
    {"tanh.", Unit::kSpecial},
    {"mma.", Unit::kTensor},
    {"ldmatrix.", Unit::kSharedRows},
    {"ld.shared", Unit::kShared},
    {"st.shared", Unit::kShared},
    {"cp.async.ca", Unit::kSharedCopy},
    {"cp.async.cg", Unit::kSharedCopy},
    {"ld.global", Unit::kIssue},
    {"st.global", Unit::kIssue},
    {"shfl.", Unit::kIssue},
    {"bar.", Unit::kIssue},
}};

constexpr std::int64_t kPassBytes = 128;  // 32 banks of 4 bytes
constexpr double kProductFlops = 2.0 * 16 * 8 * 16;

/// Returns the passes of a warp's access of `bytes` bytes a lane. Lanes that use the same words need one pass.
std::int64_t shared_passes(Warp& warp, const Address& address, std::int64_t bytes, LaneMask lanes) {
  std::vector<std::uint64_t> words;
  for_each_lane(lanes, [&](int lane) {
    const std::uint64_t first = warp.address(address, lane);
    for (std::uint64_t at = first / 4; at <= (first + static_cast<std::uint64_t>(bytes) - 1) / 4; ++at)
      words.push_back(at);
  });
  std::ranges::sort(words);
  const auto repeated = std::ranges::unique(words);
  const auto distinct = std::ssize(words) - std::ssize(repeated);
  return (4 * distinct + kPassBytes - 1) / kPassBytes;
}

}  // namespace

Unit unit_of(std::string_view opcode) {
  const auto found = std::ranges::find_if(kUnits, [&](const auto& unit) { return opcode.starts_with(unit.first); });
  if (found == kUnits.end()) return Unit::kNone;
  const bool is_arithmetic = found->second == Unit::kFp32 || found->second == Unit::kSpecial;
  return is_arithmetic && !opcode.ends_with(".f32") ? Unit::kNone : found->second;
}

void count_instruction(Work& work, Warp& warp, const Instruction& in, LaneMask lanes) {
  ++work.issued;
  switch (in.unit) {
    case Unit::kFp32:
      ++work.fp32;
      break;
    case Unit::kSpecial:
      ++work.special;
      break;
    case Unit::kTensor:
      work.tensor_flops += kProductFlops;
      break;
    case Unit::kShared:
      work.shared_passes += shared_passes(warp, in.address[0], in.access_bytes, lanes);
      break;
    case Unit::kSharedCopy:
      work.shared_passes += shared_passes(warp, in.address[0], in.immediate[0], lanes);
      break;
    case Unit::kSharedRows:  // 128 bytes for each register of a lane
      work.shared_passes += std::ranges::count_if(in.bytes, [](int bytes) { return bytes != 0; });
      break;
    case Unit::kIssue:
    case Unit::kNone:
      break;
  }
}

}  // namespace plumb::test::ptx

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

/// Returns the words that lanes use, each once.
std::vector<std::uint64_t> words_of(Warp& warp, const Address& address, std::int64_t bytes, LaneMask lanes) {
  std::vector<std::uint64_t> words;
  for_each_lane(lanes, [&](int lane) {
    const std::uint64_t first = warp.address(address, lane);
    for (std::uint64_t at = first / 4; at <= (first + static_cast<std::uint64_t>(bytes) - 1) / 4; ++at)
      words.push_back(at);
  });
  std::ranges::sort(words);
  const auto repeated = std::ranges::unique(words);
  words.erase(repeated.begin(), repeated.end());
  return words;
}

/// Returns the passes of lanes whose words go through shared memory together: as many as the most words of a bank.
std::int64_t passes_of(const std::vector<std::uint64_t>& words) {
  std::array<std::int64_t, kPassBytes / 4> of_bank{};
  for (const std::uint64_t word : words) ++of_bank[word % of_bank.size()];
  return *std::ranges::max_element(of_bank);
}

/// Adds the passes of a warp's access of `bytes` bytes a lane. Lanes that use the same words need one pass. As many
/// lanes go together as have 128 bytes: all, half of them, or eight.
void count_shared(Work& work, Warp& warp, const Address& address, std::int64_t bytes, LaneMask lanes) {
  const std::int64_t distinct = std::ssize(words_of(warp, address, bytes, lanes));
  const std::int64_t least = (4 * distinct + kPassBytes - 1) / kPassBytes;
  const int together = static_cast<int>(kPassBytes / std::max<std::int64_t>(bytes, 4));
  std::int64_t passes = 0;
  for (int first = 0; first < kWarpLanes; first += together) {
    const LaneMask own = lanes & static_cast<LaneMask>(((std::uint64_t{1} << static_cast<unsigned>(together)) - 1)
                                                       << static_cast<unsigned>(first));
    if (own != 0) passes += passes_of(words_of(warp, address, bytes, own));
  }
  work.shared_passes += least;
  work.bank_conflicts += std::max<std::int64_t>(passes - least, 0);
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
      count_shared(work, warp, in.address[0], in.access_bytes, lanes);
      break;
    case Unit::kSharedCopy:
      count_shared(work, warp, in.address[0], in.immediate[0], lanes);
      break;
    case Unit::kSharedRows: {  // eight lanes name the rows of each matrix, of 16 bytes, which is a register of a lane
      const auto matrices = std::ranges::count_if(in.bytes, [](int bytes) { return bytes != 0; });
      const auto rows = static_cast<LaneMask>((std::uint64_t{1} << static_cast<unsigned>(8 * matrices)) - 1);
      Work own;
      count_shared(own, warp, in.address[0], 16, lanes & rows);
      work.shared_passes += matrices;
      work.bank_conflicts += std::max<std::int64_t>(own.shared_passes + own.bank_conflicts - matrices, 0);
      break;
    }
    case Unit::kIssue:
    case Unit::kNone:
      break;
  }
}

}  // namespace plumb::test::ptx

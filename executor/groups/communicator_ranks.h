#pragma once
// A communicator as a value: which ranks meet in it, and a rank's place among them.

#include <cstdint>
#include <string>
#include <vector>

namespace plumb { inline namespace executor {

struct CommunicatorRanks {
  std::string name;         ///< "activations", "tensor group", ...
  std::vector<int> ranks;   ///< world ranks; members are numbered by their place
  bool is_channel = false;  ///< messages go from its member 0 to its member 1
};

/// A communicator as one member sees it.
struct CommunicatorSeat {
  static constexpr std::int32_t kNone = -1;

  std::int32_t number = kNone;  ///< of the communicator; kNone where the rank is alone
  std::int32_t member = 0;
  std::int32_t members = 1;
};

}}  // namespace plumb::executor

#include "executor/transport/nccl/nccl_port.h"

namespace plumb { inline namespace executor {

std::int64_t bytes_of(NcclElement element) {
  switch (element) {
    case NcclElement::kByte:
      return 1;
    case NcclElement::kFp32:
      return 4;
    case NcclElement::kFp16:
    case NcclElement::kBf16:
      return 2;
  }
  return 1;
}

}}  // namespace plumb::executor

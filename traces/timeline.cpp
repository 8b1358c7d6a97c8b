#include "traces/timeline.h"

namespace plumb {

Stream stream_of(Op op) {
  switch (op) {
    case Op::kSendActivation:
    case Op::kSendGradient:
    case Op::kOffload:
    case Op::kEvict: return Stream::kSend;
    case Op::kRecvActivation:
    case Op::kRecvGradient:
    case Op::kReload:
    case Op::kLoad: return Stream::kReceive;
    case Op::kUnshard:
    case Op::kReshard:
    case Op::kReduceGrad: return Stream::kCollective;
    default: return Stream::kCompute;
  }
}

}  // namespace plumb

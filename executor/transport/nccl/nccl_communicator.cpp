#include "executor/transport/nccl/nccl_communicator.h"

#include <chrono>

#include <fmt/format.h>

#include "executor/transport/poll_pause.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

NcclCommunicatorHandle::NcclCommunicatorHandle(NcclPort& port, const NcclId& id, int rank, int ranks,
                                               const NcclConfig& config, std::string name, NcclPatience patience)
    : port_(port), name_(std::move(name)), patience_(std::move(patience)) {
  try {
    communicator_ = port_.begin_communicator(id, rank, ranks, config);
  } catch (const RunError& error) {
    throw RunError(fmt::format("{}: {}", name_, error.what()));
  }
  try {
    settle("its members meet");
  } catch (const RunError&) {
    abort();
    throw;
  }
}

NcclCommunicatorHandle::~NcclCommunicatorHandle() {
  abort();
}

void NcclCommunicatorHandle::abort() noexcept {
  if (const NcclPort::Communicator own = release(); own != nullptr) port_.abort({&own, 1});
}

bool NcclCommunicatorHandle::poll(const std::string& during) const {
  try {
    return port_.is_settled(communicator_);
  } catch (const RunError& error) {
    throw RunError(fmt::format("{}, while {}: {}", name_, during, error.what()));
  }
}

void NcclCommunicatorHandle::settle(const std::string& during) const {
  const auto end = std::chrono::steady_clock::now() + patience_.timeout;
  for (PollPause pause = PollPause::of_device(); !poll(during); pause.pause()) {
    if (patience_.stop_if_told) patience_.stop_if_told();
    if (std::chrono::steady_clock::now() > end)
      throw RunError(
          fmt::format("{}: for {:g} s nothing has come of it, while {}", name_, patience_.timeout.count(), during));
  }
}

void NcclCommunicatorHandle::finish() {
  port_.finalize(communicator_);
  settle("it is flushed");
  port_.destroy(release());
}

}}  // namespace plumb::executor

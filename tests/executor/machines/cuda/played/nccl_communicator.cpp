#include "tests/executor/machines/cuda/played/nccl_communicator.h"

#include <csignal>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "tests/executor/transport/nccl/host_exchange.h"

namespace plumb::test::played {
namespace {

std::string_view host_of(std::string_view place) {
  return place.substr(place.find(' '));
}

/// The faults that the options ask for in this kernel.
struct Faults {
  bool fails = false, stalls = false;
  int signal = 0;
};

Faults next_faults(State& state, int device) {
  const int call = state.nccl_calls[static_cast<std::size_t>(device)]++;
  if (device != state.options.faulty_device) return {};
  return {.fails = call == state.options.nccl_fails_at,
          .stalls = call == state.options.nccl_stalls_at,
          .signal = call == state.options.nccl_signal_at ? state.options.signal : 0};
}

/// Notices members on other hosts that have died or aborted.
void look_for_lost(ncclComm& comm) {
  for (const int member : comm.elsewhere)
    if (comm.lines->is_lost(member)) comm.failed = ncclRemoteError;
}

/// Advances a kernel that is under way. Returns false if nothing moves now.
bool advance(State& state, ncclComm& comm, test::HostExchange& exchange) {
  try {
    while (exchange.step()) state.note_progress();
  } catch (const RunError& error) {
    state.fault("NCCL", error.what());
    comm.is_stuck = true;
  }
  if (exchange.is_over()) return true;
  look_for_lost(comm);
  return false;
}

}  // namespace

std::string place_of_device(const State& state, int device) {
  static const std::string host = [] {
    const char* given = std::getenv("NCCL_HOSTID");
    return given == nullptr ? "this host" : given;
  }();
  return state.bus_of(device) + " " + host;
}

bool have_met(ncclComm& comm) {
  if (!comm.lines->all_have_joined()) return false;
  if (comm.has_met) return true;
  comm.has_met = true;
  if (!duplicate_gpu(comm).empty()) comm.failed = ncclInvalidUsage;
  const std::string own = comm.lines->about(comm.lines->member());
  for (int member = 0; member < comm.lines->members(); ++member)
    if (host_of(comm.lines->about(member)) != host_of(own)) comm.elsewhere.push_back(member);
  return true;
}

std::string duplicate_gpu(const ncclComm& comm) {
  std::map<std::string, int> first;
  for (int member = 0; member < comm.lines->members(); ++member) {
    const auto [found, is_new] = first.emplace(comm.lines->about(member), member);
    if (!is_new)
      return "Duplicate GPU detected : rank " + std::to_string(found->second) + " and rank " + std::to_string(member) +
             " both on CUDA device " + found->first.substr(0, found->first.find(' '));
  }
  return {};
}

bool have_called(const State& state, ncclComm& comm) {
  // NCCL connects members when they first call; the other seeds play the worst case, of a connection for each call.
  if (comm.calls > 1 && state.options.seed % 2 == 0) return true;
  for (int member = 0; member < comm.lines->members(); ++member)
    if (comm.lines->calls_of(member) < comm.calls) {
      look_for_lost(comm);
      return false;
    }
  return true;
}

Work kernel_of(State& state, const CommunicatorPtr& comm, std::vector<NcclPart> parts) {
  auto exchange = std::make_shared<test::HostExchange>();
  const Faults faults = next_faults(state, comm->device);
  return [&state, comm, parts = std::move(parts), exchange, faults, number = comm->launched++, held = 0]() mutable {
    int& all_held = state.contexts[static_cast<std::size_t>(comm->device)].held_sms;
    if (comm->is_aborted) {
      all_held -= held;
      return true;
    }
    if (comm->over != number || comm->is_stuck || comm->failed != ncclSuccess) return false;
    if (faults.fails) comm->failed = ncclRemoteError;
    if (faults.fails || faults.stalls) return false;
    if (held == 0) {
      if (all_held + comm->sms > state.options.multiprocessors) return false;
      all_held += held = comm->sms;
      state.note_progress();
      if (faults.signal != 0) std::raise(faults.signal);
      for (const NcclPart& part : parts) exchange->add(*comm->lines, part.kind, part.call);
    }
    if (!advance(state, *comm, *exchange)) return false;
    all_held -= held;
    ++comm->over;
    return true;
  };
}

}  // namespace plumb::test::played

#include "executor/mpi/mpi_world.h"

#include <mpi.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "executor/mpi/joined.h"
#include "executor/timed/sleeper.h"
#include "executor/transport.h"
#include "schedules/error.h"

namespace plumb {
namespace {

bool has_joined = false;

constexpr int kRoundTrips = 200;
constexpr int kClockTag = 1;

std::int64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// The same for all processes of one running machine, and for no two machines.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

/// Rank 0 answers with its clock, as often as it is asked.
void answer(int other) {
  for (int i = 0; i < kRoundTrips; ++i) {
    char asked = 0;
    MPI_Recv(&asked, 1, MPI_CHAR, other, kClockTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const std::int64_t now = monotonic_ns();
    MPI_Send(&now, 1, MPI_INT64_T, other, kClockTag, MPI_COMM_WORLD);
  }
}

/// What is to be added to rank 0's clock to have this machine's.
std::int64_t offset_to_rank_0() {
  std::int64_t quickest = std::numeric_limits<std::int64_t>::max(), offset = 0;
  for (int i = 0; i < kRoundTrips; ++i) {
    const char ask = 1;
    std::int64_t there = 0;
    const std::int64_t before = monotonic_ns();
    MPI_Send(&ask, 1, MPI_CHAR, 0, kClockTag, MPI_COMM_WORLD);
    MPI_Recv(&there, 1, MPI_INT64_T, 0, kClockTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const std::int64_t after = monotonic_ns();
    if (after - before >= quickest) continue;
    quickest = after - before;
    offset = before + (after - before) / 2 - there;
  }
  return offset;
}

}  // namespace

MpiWorld::MpiWorld() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED)
    throw RunError("this MPI lets only one thread call it: use one built with thread support");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiWorld::~MpiWorld() {
  meet({});
  MPI_Finalize();
}

MpiWorld& MpiWorld::joined() {
  static MpiWorld world;
  has_joined = true;
  return world;
}

void MpiWorld::meet(std::optional<Seconds> patience) const {
  constexpr SimTime kPause{200'000'000};
  const Sleeper sleeper;
  MPI_Request all = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  while (true) {
    int have_come = 0;
    MPI_Test(&all, &have_come, MPI_STATUS_IGNORE);
    if (have_come != 0) return;
    if (patience && sleeper.now() > to_sim_time(*patience))
      throw RunError(fmt::format("rank {} waited {} s for the other ranks to come, and not all of them have", rank_,
                                 patience->count()));
    sleeper.sleep_until(sleeper.now() + kPause);
  }
}

void MpiWorld::require_team(int needed, std::uint64_t fingerprint, Seconds patience) {
  patience_ = patience;
  if (size_ != needed)
    throw SpecError(fmt::format("the schedule has {} ranks and {} were started: start it with mpirun -n {}", needed,
                                size_, needed));
  meet(patience_);
  std::uint64_t least = 0, most = 0;
  MPI_Allreduce(&fingerprint, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&fingerprint, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  if (least != most)
    throw SpecError("the ranks were given different plans: start all of them with the same files and options");
}

std::vector<std::string> MpiWorld::gather(const std::string& bytes) {
  meet(patience_);
  std::vector<std::string> all;
  auto own = static_cast<std::uint64_t>(bytes.size());
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size_));
  MPI_Gather(&own, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank_ != 0) {
    MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    return all;
  }
  all.push_back(bytes);
  for (int other = 1; other < size_; ++other) {
    all.emplace_back(sizes[static_cast<std::size_t>(other)], '\0');
    MPI_Recv(all.back().data(), static_cast<int>(all.back().size()), MPI_BYTE, other, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  return all;
}

std::int64_t MpiWorld::common_moment_ns() {
  const std::vector<std::string> machines = gather(boot_id());
  std::vector<int> is_remote(static_cast<std::size_t>(size_), 0);
  for (std::size_t other = 1; other < machines.size(); ++other) is_remote[other] = machines[other] != machines[0];
  MPI_Bcast(is_remote.data(), size_, MPI_INT, 0, MPI_COMM_WORLD);
  std::int64_t offset = 0;
  for (int other = 1; other < size_; ++other) {
    if (is_remote[static_cast<std::size_t>(other)] == 0) continue;
    if (rank_ == 0) answer(other);
    if (rank_ == other) offset = offset_to_rank_0();
  }
  std::int64_t moment = monotonic_ns();
  MPI_Bcast(&moment, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  return moment + offset;
}

void MpiWorld::stop_all(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

bool has_joined_mpi() {
  return has_joined;
}

void stop_mpi_ranks(int status) {
  MpiWorld::stop_all(status);
}

}  // namespace plumb

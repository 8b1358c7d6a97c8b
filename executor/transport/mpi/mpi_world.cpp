#include "executor/transport/mpi/mpi_world.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "executor/transport/monotonic_clock.h"
#include "executor/transport/mpi/joined.h"
#include "executor/transport/mpi/polite_wait.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

bool has_joined = false;

constexpr int kRoundTrips = 200;
constexpr int kClockTag = 1, kCallTag = 2;
constexpr Seconds kPromptly{1e-3};  // time in which a message is polled without a pause; a round trip is shorter
constexpr std::uint64_t kLongestMessage = 1 << 30;

/// Returns a text that is the same for all processes that read one clock, and differs between machines: the id of the
/// running system, and the offsets of the time namespace, where a container has one.
std::string clock_id() {
  std::string id;
  for (const char* path : {"/proc/sys/kernel/random/boot_id", "/proc/self/timens_offsets"}) {
    std::ifstream file(path);
    id.append(std::istreambuf_iterator<char>(file), {});
  }
  return id;
}

void await(MPI_Request request, PoliteWait wait) {
  MPI_Comm_rank(MPI_COMM_WORLD, &wait.rank);
  wait_politely(wait, [&] {
    int has_ended = 0;
    MPI_Test(&request, &has_ended, MPI_STATUS_IGNORE);
    return has_ended != 0;
  });
}

std::string rank_text(int rank) {
  return fmt::format("rank {}", rank);
}

void send(const void* values, int count, MPI_Datatype type, int to, int tag, Seconds patience) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(values, count, type, to, tag, MPI_COMM_WORLD, &request);
  await(request, {.what = rank_text(to), .patience = patience, .eager = kPromptly});
}

void receive(void* values, int count, MPI_Datatype type, int from, int tag, Seconds patience) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(values, count, type, from, tag, MPI_COMM_WORLD, &request);
  await(request, {.what = rank_text(from), .patience = patience, .eager = kPromptly});
}

/// Sends rank 0's values to all ranks.
void tell_all(void* values, int count, MPI_Datatype type, Seconds patience) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(values, count, type, 0, MPI_COMM_WORLD, &request);
  await(request, {.what = rank_text(0), .patience = patience});
}

/// Answers on rank 0 with its clock, as often as the other rank asks.
void answer(int other, Seconds patience) {
  for (int i = 0; i < kRoundTrips; ++i) {
    char asked = 0;
    receive(&asked, 1, MPI_CHAR, other, kClockTag, patience);
    const std::int64_t now = monotonic_ns();
    send(&now, 1, MPI_INT64_T, other, kClockTag, patience);
  }
}

/// Returns the offset to add to rank 0's clock to get this machine's.
std::int64_t offset_to_rank_0(Seconds patience) {
  std::int64_t quickest = std::numeric_limits<std::int64_t>::max(), offset = 0;
  for (int i = 0; i < kRoundTrips; ++i) {
    const char ask = 1;
    std::int64_t there = 0;
    const std::int64_t before = monotonic_ns();
    send(&ask, 1, MPI_CHAR, 0, kClockTag, patience);
    receive(&there, 1, MPI_INT64_T, 0, kClockTag, patience);
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
  try {  // the others wait without a limit for rank 0, which may have more to do; when it comes, they are there
    meet(rank_ == 0 ? std::optional(patience_) : std::nullopt);
  } catch (const RunError& error) {
    std::fprintf(stderr, "plumb: %s\n", error.what());
    stop_all(1);
  }
  MPI_Finalize();
}

MpiWorld& MpiWorld::joined() {
  static MpiWorld world;
  has_joined = true;
  return world;
}

void MpiWorld::meet(std::optional<Seconds> patience) const {
  MPI_Request all = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  await(all, {.what = "the other ranks", .patience = patience});
}

void MpiWorld::require_team(int needed, std::uint64_t fingerprint, Seconds patience) {
  patience_ = patience;
  if (size_ != needed)
    throw SpecError(fmt::format("the schedule has {} ranks and {} were started: start it with mpirun -n {}", needed,
                                size_, needed));
  // The largest of all fingerprints, and the largest of their complements, which is that of the smallest fingerprint.
  const std::array<std::uint64_t, 2> own = {fingerprint, ~fingerprint};
  std::array<std::uint64_t, 2> most{};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(own.data(), most.data(), 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD, &request);
  await(request, {.what = "the other ranks' plans", .patience = patience_});
  if (most[0] != ~most[1])
    throw SpecError("the ranks were given different plans: start all of them with the same files and options");
}

std::vector<std::string> MpiWorld::gather(const std::string& bytes) {
  meet(patience_);
  std::vector<std::string> all;
  const auto own = static_cast<std::uint64_t>(bytes.size());
  if (rank_ != 0) {
    send(&own, 1, MPI_UINT64_T, 0, 0, patience_);
    for (std::uint64_t sent = 0; sent < own; sent += kLongestMessage)
      send(bytes.data() + sent, static_cast<int>(std::min(kLongestMessage, own - sent)), MPI_BYTE, 0, 0, patience_);
    return all;
  }
  all.push_back(bytes);
  for (int other = 1; other < size_; ++other) {
    std::uint64_t size = 0;
    receive(&size, 1, MPI_UINT64_T, other, 0, patience_);
    std::string& there = all.emplace_back(size, '\0');
    for (std::uint64_t got = 0; got < size; got += kLongestMessage)
      receive(there.data() + got, static_cast<int>(std::min(kLongestMessage, size - got)), MPI_BYTE, other, 0,
              patience_);
  }
  return all;
}

std::vector<std::string> MpiWorld::exchange(const std::string& bytes) {
  std::vector<std::string> all = gather(bytes);
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size_));
  for (std::size_t rank = 0; rank < all.size(); ++rank) sizes[rank] = all[rank].size();
  tell_all(sizes.data(), size_, MPI_UINT64_T, patience_);
  all.resize(sizes.size());
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    all[rank].resize(sizes[rank]);
    for (std::uint64_t told = 0; told < sizes[rank]; told += kLongestMessage)
      tell_all(all[rank].data() + told, static_cast<int>(std::min(kLongestMessage, sizes[rank] - told)), MPI_BYTE,
               patience_);
  }
  return all;
}

void MpiWorld::call_out(const std::string& text) const {
  static std::string sent;  // must last as long as it may be under way
  sent = text;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(sent.data(), static_cast<int>(sent.size()), MPI_CHAR, other, kCallTag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
}

std::optional<MpiWorld::Heard> MpiWorld::hear() const {
  int is_there = 0, size = 0;
  MPI_Status status{};
  MPI_Iprobe(MPI_ANY_SOURCE, kCallTag, MPI_COMM_WORLD, &is_there, &status);
  if (is_there == 0) return {};
  MPI_Get_count(&status, MPI_CHAR, &size);
  Heard heard{.rank = status.MPI_SOURCE, .text = std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Recv(heard.text.data(), size, MPI_CHAR, heard.rank, kCallTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return heard;
}

std::int64_t MpiWorld::common_moment_ns() {
  const std::vector<std::string> clocks = gather(clock_id());
  std::vector<int> is_remote(static_cast<std::size_t>(size_), 0);
  for (std::size_t other = 1; other < clocks.size(); ++other) is_remote[other] = clocks[other] != clocks[0];
  tell_all(is_remote.data(), size_, MPI_INT, patience_);
  std::int64_t offset = 0;
  for (int other = 1; other < size_; ++other) {
    if (is_remote[static_cast<std::size_t>(other)] == 0) continue;
    if (rank_ == 0) answer(other, patience_);
    if (rank_ == other) offset = offset_to_rank_0(patience_);
  }
  std::int64_t moment = monotonic_ns();
  tell_all(&moment, 1, MPI_INT64_T, patience_);
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

}}  // namespace plumb::executor

#include "tools/io/checkpoint_file.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/tools/test_folder.h"
#include "tools/io/files.h"

namespace plumb::test {
namespace fs = std::filesystem;

namespace {

TrainingState state_after(std::int64_t steps) {
  return {.facts = {{"seed", "1"}},
          .steps = steps,
          .updates = steps,
          .parameters = {{{.name = "0.w",
                           .shape = {2, 512},
                           .weights = std::vector<float>(1024, 0.5F),
                           .fields = {{"momentum", std::vector<std::byte>(4096, std::byte{7})}}}}}};
}

/// A full disk: while this object lives, no file grows beyond so many bytes.
struct FullDisk {
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  rlimit before{};
};

}  // namespace

TEST_CASE("a checkpoint is read as it was written, and the next one takes its place") {
  const TestFolder folder;
  const std::string inside = folder.path + "/not/there/yet";
  const FileLock lock = prepare_checkpoints(inside);
  write_checkpoint(inside, state_after(3));
  write_checkpoint(inside, state_after(4));
  CHECK(read_checkpoint(inside) == state_after(4));
}

TEST_CASE("a full disk leaves the checkpoint before, and says so") {
  const TestFolder folder;
  const FileLock lock = prepare_checkpoints(folder.path);
  write_checkpoint(folder.path, state_after(3));
  {
    const FullDisk disk(5000);
    CHECK_THROWS_WITH_AS(write_checkpoint(folder.path, state_after(4)), doctest::Contains("make room"), InputError);
  }
  CHECK(read_checkpoint(folder.path) == state_after(3));
}

TEST_CASE("what a killed run has left half-written is no checkpoint, and the next run clears it away") {
  const TestFolder folder;
  std::optional<FileLock> lock(prepare_checkpoints(folder.path));
  write_checkpoint(folder.path, state_after(3));
  const std::string half = checkpoint_path(folder.path) + ".aBcDeF.tmp";
  std::ofstream(half) << to_bytes(state_after(4)).substr(0, 1000);
  CHECK(read_checkpoint(folder.path) == state_after(3));
  lock.reset();
  lock.emplace(prepare_checkpoints(folder.path));
  CHECK_FALSE(fs::exists(half));
  CHECK(read_checkpoint(folder.path) == state_after(3));
}

TEST_CASE("a folder without a checkpoint, or that cannot be made, is refused") {
  const TestFolder folder;
  CHECK_THROWS_WITH_AS(read_checkpoint(folder.path), doctest::Contains("checkpoint.plumb: there is no such file"),
                       InputError);
  write_file(folder.path + "/file", "x");
  CHECK_THROWS_WITH_AS(static_cast<void>(prepare_checkpoints(folder.path + "/file/inside")),
                       doctest::Contains("cannot be made"), InputError);
}

TEST_CASE("a folder is one run's at a time, and free again at its end") {
  const TestFolder folder;
  {
    const FileLock lock = prepare_checkpoints(folder.path);
    CHECK_THROWS_WITH_AS(static_cast<void>(prepare_checkpoints(folder.path)),
                         doctest::Contains("keeps its checkpoints here: wait for its end, or name another folder"),
                         InputError);
  }
  const FileLock next = prepare_checkpoints(folder.path);
  write_checkpoint(folder.path, state_after(0));
  CHECK(read_checkpoint(folder.path) == state_after(0));
}

}  // namespace plumb::test

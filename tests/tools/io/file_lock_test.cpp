#include "tools/io/file_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <doctest/doctest.h>

#include "tests/tools/test_folder.h"

namespace plumb::test {

TEST_CASE("a lock has one owner, is free when that one ends, and names it meanwhile") {
  const TestFolder folder;
  const std::string path = folder.file("lock");
  {
    const FileLock first(path);
    CHECK(first.held_by().empty());
    const FileLock second(path);
    CHECK(second.held_by().starts_with("process " + std::to_string(getpid()) + " on "));
  }
  CHECK(folder.entries() == 0);
  const pid_t child = fork();
  if (child == 0) {  // it is killed while it has the lock: its file stays, the lock does not
    const FileLock lock(path);
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  CHECK(folder.entries() == 1);
  CHECK(FileLock(path).held_by().empty());
  CHECK(folder.entries() == 0);
}

}  // namespace plumb::test

#include "tools/machine/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include <fmt/format.h>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace plumb { inline namespace tools {
namespace {

using Clock = std::chrono::steady_clock;

/// Starts the program, which writes into the pipe. Returns its process, or -1 if there is no such program.
pid_t start(const std::vector<std::string>& words, const std::array<int, 2>& pipe) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  if (posix_spawnp(&child, words.front().c_str(), &files, nullptr, arguments.data(), environ) != 0) child = -1;
  posix_spawn_file_actions_destroy(&files);
  return child;
}

/// Appends to `text` until the other end of the pipe is closed. Returns false if the time `end` comes before.
bool read_all(int from, Clock::time_point end, std::string& text) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd asked{.fd = from, .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&asked, 1, static_cast<int>(left)) == 0) return false;
    std::array<char, 4096> part{};
    const ssize_t got = read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

ProgramAnswer run_program(const std::vector<std::string>& words, Seconds patience) {
  const std::string& name = words.front();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {.text = {}, .why = fmt::format("{} cannot be started", name)};
  const pid_t child = start(words, ends);
  close(ends[1]);
  ProgramAnswer answer;
  if (child < 0) {
    close(ends[0]);
    return {.text = {}, .why = fmt::format("there is no {} here", name)};
  }
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  bool in_time = read_all(ends[0], end, answer.text);
  close(ends[0]);
  int status = 0;
  while (in_time && waitpid(child, &status, WNOHANG) == 0) {  // it has closed its output and still runs
    in_time = Clock::now() < end;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!in_time) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return {.text = {}, .why = fmt::format("{} did not answer within {:g} s", name, patience.count())};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string how =
        WIFEXITED(status) ? fmt::format("status {}", WEXITSTATUS(status)) : fmt::format("signal {}", WTERMSIG(status));
    return {.text = {}, .why = fmt::format("{} ended with {}", name, how)};
  }
  return answer;
}

}}  // namespace plumb::tools

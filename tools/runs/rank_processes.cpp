#include "tools/runs/rank_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "executor/transport/transport.h"

namespace plumb { inline namespace tools {
namespace {

constexpr const char* kOwnProgram = "/proc/self/exe";

/// Returns the arguments of this process, its name first.
std::vector<std::string> own_arguments() {
  std::vector<std::string> arguments;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');) arguments.push_back(word);
  return arguments;
}

/// A folder where the ranks meet.
class MeetingFolder {
 public:
  MeetingFolder() : path_((std::filesystem::temp_directory_path() / "plumb-ranks-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw RunError(
          fmt::format("the ranks have no folder to meet in: {} cannot be made; name another with TMPDIR", path_));
  }
  ~MeetingFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  MeetingFolder(const MeetingFolder&) = delete;
  MeetingFolder& operator=(const MeetingFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class RankProcesses {
 public:
  RankProcesses() = default;
  ~RankProcesses() {
    end_all();
    while (!processes_.empty()) wait_for_one();
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void start(std::vector<std::string> arguments) {
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const pid_t parent = getpid(), process = fork();
    if (process < 0) throw RunError("the system starts no more processes");
    if (process == 0) {  // only calls that are safe behind a fork
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() == parent) execv(kOwnProgram, words.data());
      _exit(1);
    }
    processes_.push_back(process);
    ranks_.push_back(process);
  }

  /// Returns when all have ended. Throws as run_rank_processes() does.
  void wait() {
    bool has_failed = false;
    std::string ended;
    while (!processes_.empty()) {
      const auto [rank, status] = wait_for_one();
      has_failed |= status != 0;
      if (!WIFSIGNALED(status) || !ended.empty()) continue;
      ended = fmt::format("rank {}: its process was ended by signal {}", rank, WTERMSIG(status));
      end_all();
    }
    if (!ended.empty()) throw RunError(ended);
    if (has_failed) throw RunAborted("a rank has failed, and has said why");
  }

 private:
  struct Ended {
    int rank = 0, status = 0;
  };

  Ended wait_for_one() {
    int status = 0;
    pid_t process = 0;
    do process = ::wait(&status);
    while (process < 0 && errno == EINTR);
    std::erase(processes_, process);
    return {static_cast<int>(std::ranges::find(ranks_, process) - ranks_.begin()), status};
  }
  void end_all() {
    for (const pid_t process : processes_) kill(process, SIGTERM);
  }

  std::vector<pid_t> processes_;  // those that have not ended
  std::vector<pid_t> ranks_;      // [rank]
};

}  // namespace

void run_rank_processes(int ranks) {
  const MeetingFolder folder;
  RankProcesses processes;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> arguments = own_arguments();
    for (const std::string& word : {std::string("--board"), folder.path(), std::string("--rank"), std::to_string(rank)})
      arguments.push_back(word);
    processes.start(std::move(arguments));
  }
  processes.wait();
}

}}  // namespace plumb::tools

#include "executor/transport/nccl/folder_board.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/spec/fingerprint.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kBetweenQuestions{0.01};
constexpr Seconds kBetweenFaults{0.2};
constexpr Seconds kForGoodbyes{5};
constexpr std::size_t kTeamLetters = 16;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the text of a file, or nothing if there is no such file.
std::optional<std::string> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string random_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// Asks until `is_so` returns true. Returns false if the time runs out.
bool wait_until(Seconds patience, const std::function<bool()>& is_so) {
  const double end = now_s() + patience.count();
  while (!is_so()) {
    if (now_s() > end) return false;
    std::this_thread::sleep_for(kBetweenQuestions);
  }
  return true;
}

}  // namespace

FolderBoard::FolderBoard(fs::path folder, int rank, int ranks, Seconds patience)
    : folder_(std::move(folder)), rank_(rank), ranks_(ranks), patience_(patience) {
  if (rank < 0 || rank >= ranks)
    throw SpecError(fmt::format("rank {} is none of the {} ranks that the run has, 0 to {}", rank, ranks, ranks - 1));
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw RunError(fmt::format("{}: {}", folder_.string(), error.message()));
  meet(random_word());
}

/// Rank 0 names the team after the words that it finds, again whenever they change, until all ranks have seen their own
/// word in it.
void FolderBoard::meet(const std::string& own) {
  const auto hello = [](int rank) { return fmt::format("hello.{}", rank); };
  const auto agreed = [](int rank) { return fmt::format("agreed.{}", rank); };
  write(hello(rank_), own);
  std::string words;
  int missing = 0;
  const auto name_of = [](const std::string& text) {
    Fingerprint print;
    print.add(std::string_view(text));
    return fmt::format("{:016x}", print.value());
  };
  const bool all_are_here = wait_until(patience_, [&] {
    if (rank_ == 0) {
      std::string found;
      for (missing = 0; missing < ranks_; ++missing) {
        const std::optional<std::string> word = read(folder_ / hello(missing));
        if (!word) return false;
        found += *word + "\n";
      }
      if (found != words) write("team", words = found);
      team_ = name_of(words);
      for (missing = 1; missing < ranks_; ++missing)
        if (read(folder_ / agreed(missing)) != team_) return false;
      write("begin", team_);
      return true;
    }
    const std::string found = read(folder_ / "team").value_or("");
    if (found.find(own) == std::string::npos) return false;
    if (found != words) {
      words = found;
      team_ = name_of(words);
      write(agreed(rank_), team_);
    }
    return read(folder_ / "begin") == team_;
  });
  if (!all_are_here)
    throw RunError(fmt::format("rank {}, before its actions, waited for rank {} in {}, and for {:g} s nothing came",
                               rank_, missing, folder_.string(), patience_.count()));
  if (rank_ == 0) remove_others();
}

/// Removes the files of runs that did not end well, which have names that teams give.
void FolderBoard::remove_others() const {
  const auto is_name = [](const std::string& name) {
    return name.size() > kTeamLetters && name[kTeamLetters] == '.' &&
           name.find_first_not_of("0123456789abcdef") == kTeamLetters;
  };
  std::error_code error, none;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_name(name) && !name.starts_with(team_)) fs::remove(entry->path(), none);
  }
}

FolderBoard::~FolderBoard() {
  try {
    const auto bye = [&](int rank) { return fmt::format("{}.bye.{}", team_, rank); };
    write(bye(rank_), "");
    if (rank_ != 0 || has_told_ || !fault_.empty()) return;  // the others have yet to read the fault
    wait_until(kForGoodbyes, [&] {
      for (int rank = 0; rank < ranks_; ++rank)
        if (!fs::exists(folder_ / bye(rank))) return false;
      return true;
    });
    std::error_code error;
    for (int rank = 0; rank < ranks_; ++rank)
      for (const std::string& name : {fmt::format("hello.{}", rank), fmt::format("agreed.{}", rank), bye(rank),
                                      file_of(rounds_, rank), file_of(rounds_ - 1, rank)})
        fs::remove(folder_ / name, error);
    for (const std::string& name : {std::string("team"), std::string("begin"), team_ + ".fault"})
      fs::remove(folder_ / name, error);
  } catch (const std::exception&) {  // files that stay there do no harm
  }
}

std::string FolderBoard::file_of(int round, int rank) const {
  return fmt::format("{}.{}.{}", team_, round, rank);
}

/// Writes the file in one step, so that no rank reads half of it.
void FolderBoard::write(const std::string& name, const std::string& text) const {
  const fs::path path = folder_ / name, part = folder_ / fmt::format("{}.part{}", name, rank_);
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw RunError(fmt::format("{} cannot be written", path.string()));
  std::error_code error;
  fs::rename(part, path, error);
  if (error) throw RunError(fmt::format("{}: {}", path.string(), error.message()));
}

std::string FolderBoard::exchange(const std::string& own, std::vector<std::string>& all) {
  try {
    ++rounds_;
    write(file_of(rounds_, rank_), own);
    all.assign(static_cast<std::size_t>(ranks_), {});
    std::string wrong;
    for (int rank = 0; rank < ranks_ && wrong.empty(); ++rank) {
      const bool came = wait_until(patience_, [&] {
        const std::optional<std::string> there = read(folder_ / file_of(rounds_, rank));
        if (there) all[static_cast<std::size_t>(rank)] = *there;
        if (!there) wrong = told();
        return there.has_value() || !wrong.empty();
      });
      if (!came)
        return fmt::format("rank {}, outside its actions, waited for rank {}, and for {:g} s nothing came", rank_, rank,
                           patience_.count());
    }
    std::error_code error;  // a rank that is here has read the round before
    if (wrong.empty()) fs::remove(folder_ / file_of(rounds_ - 1, rank_), error);
    return wrong;
  } catch (const std::exception& error) {
    return sentence_of(error);
  }
}

bool FolderBoard::tell(const std::string& fault) {
  if (has_told_) return true;
  try {
    const std::string own = fmt::format("{}.fault.{}", team_, rank_);
    write(own, fault);
    std::error_code error;  // set if another fault came first
    fs::create_hard_link(folder_ / own, folder_ / (team_ + ".fault"), error);
    std::error_code none;
    fs::remove(folder_ / own, none);
    if (error) return false;
  } catch (const std::exception&) {  // the others find out by their own patience
  }
  return has_told_ = true;
}

std::string FolderBoard::told() {
  if (has_told_ || !fault_.empty()) return fault_;
  if (now_s() - asked_s_ < kBetweenFaults.count()) return {};
  asked_s_ = now_s();
  try {
    return fault_ = read(folder_ / (team_ + ".fault")).value_or("");
  } catch (const std::exception&) {
    return {};
  }
}

}}  // namespace plumb::executor

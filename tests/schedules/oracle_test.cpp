// PyTorch 2.14's own schedules (tests/shared_folder.h).

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <doctest/doctest.h>

#include "schedules/forms/torch_csv.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/torch_lowering.h"
#include "schedules/rules/validate.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace fs = std::filesystem;

namespace {

struct OracleFile {
  std::string schedule;
  ScheduleParameters parameters;
  std::string text;
};

/// Returns the files "<schedule>_p<ranks>_v<chunks>_m<microbatches>.<form>.csv" of one schedule, in the order of their
/// names.
std::vector<OracleFile> oracle_files(const std::string& schedule, const std::string& form = "compute_only") {
  const std::optional<fs::path> folder = plumb::test::shared_path("oracles/torch_csv");
  if (!folder) return {};
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(*folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  const std::regex pattern("(\\w+)_p(\\d+)_v(\\d+)_m(\\d+)\\." + form + "\\.csv");
  std::vector<OracleFile> files;
  for (const fs::path& path : paths) {
    std::smatch match;
    const std::string name = path.filename();
    if (!std::regex_match(name, match, pattern) || match[1] != schedule) continue;
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    files.push_back({name,
                     {.ranks = std::stoi(match[2]), .microbatches = std::stoi(match[4]), .chunks = std::stoi(match[3])},
                     text.str()});
  }
  CHECK_FALSE(files.empty());
  return files;
}

void check_equal(const std::string& theirs, std::string_view ours) {
  for (const OracleFile& file : oracle_files(theirs)) {
    CAPTURE(file.schedule);
    const Schedule read = read_torch_csv(file.text, file.schedule).schedule;
    const Schedule made = make_schedule(ours, file.parameters);
    CHECK(read.ranks == made.ranks);
    CHECK(read.stages == made.stages);
    CHECK(read.microbatches == made.microbatches);
    CHECK(validate(read).empty());
  }
}

/// PyTorch's names of schedules, and ours.
const std::vector<std::pair<std::string, std::string>> kNames = {
    {"GPipe", "gpipe"},        {"Interleaved1F1B", "interleaved"},
    {"LoopedBFS", "bfs"},      {"InterleavedZeroBubble", "izb"},
    {"ZBVZeroBubble", "zb-v"}, {"DualPipeV", "dualpipev"}};

}  // namespace

TEST_SUITE_BEGIN("oracle");

TEST_CASE("PyTorch's lowering is reproduced, action by action") {
  for (const auto& [theirs, ours] : kNames) {
    for (const OracleFile& file : oracle_files(theirs, "compute_comms")) {
      CAPTURE(file.schedule);
      const Schedule read = read_torch_csv(file.text, file.schedule).schedule;
      const Schedule lowered = lower_as_torch(make_schedule(ours, file.parameters));
      CHECK(read.ranks == lowered.ranks);
      CHECK(validate(read).empty());
      CHECK(write_torch_csv(lowered) == file.text);
    }
  }
}

TEST_CASE("PyTorch's deferred receives are reproduced") {
  for (const OracleFile& file : oracle_files("Interleaved1F1B", "compute_comms.defer_recv")) {
    CAPTURE(file.schedule);
    const Schedule read = read_torch_csv(file.text, file.schedule).schedule;
    CHECK(read.ranks ==
          lower_as_torch(make_schedule("interleaved", file.parameters), {.deferred_receives = true}).ranks);
    CHECK(validate(read, {.sends = Sends::kBuffered}).empty());
    CHECK(validate(read, {.sends = Sends::kRendezvous}).empty());
    const std::vector<Violation> blocked = validate(read, {.sends = Sends::kBlocking});
    REQUIRE(blocked.size() == 1);
    CHECK(blocked.front().rule == Rule::kDeadlock);
  }
}

TEST_CASE("GPipe equals PyTorch's, action by action") {
  check_equal("GPipe", "gpipe");
}

TEST_CASE("interleaved equals PyTorch's Interleaved1F1B, action by action") {
  check_equal("Interleaved1F1B", "interleaved");
}

TEST_CASE("bfs equals PyTorch's LoopedBFS, action by action") {
  check_equal("LoopedBFS", "bfs");
}

TEST_CASE("izb equals PyTorch's InterleavedZeroBubble, action by action") {
  check_equal("InterleavedZeroBubble", "izb");
}

TEST_CASE("seq1f1b equals its authors' order for p=4, m=8, k=4") {
  const std::optional<std::string> text = plumb::test::shared_text("oracles/zero_bubble/Seq1F1B_k4_p4_m8.txt");
  if (!text) return;
  std::istringstream file(*text);
  const Schedule made = make_schedule("seq1f1b", {.ranks = 4, .microbatches = 8, .slices = 4});
  for (int r = 0; r < 4; ++r) {
    std::string theirs, ours;
    std::getline(file, theirs);  // "F0.0 F0.1 ... BW0.3": micro-batch and slice
    for (const Action& a : made.ranks[r]) {
      if (!ours.empty()) ours += ' ';
      ours += (a.op == Op::kForward ? "F" : "BW") + std::to_string(a.microbatch) + "." + std::to_string(a.part);
    }
    CHECK(ours == theirs);
  }
}

TEST_CASE("ZB-V equals PyTorch's ZBVZeroBubble, action by action") {
  check_equal("ZBVZeroBubble", "zb-v");
}

TEST_CASE("DualPipeV equals PyTorch's, action by action and pair by pair") {
  check_equal("DualPipeV", "dualpipev");
}

TEST_CASE("PyTorch's dumped 1F1B is refused on its last rank, where the fault is") {
  for (const OracleFile& file : oracle_files("1F1B")) {
    CAPTURE(file.schedule);
    const std::vector<Violation> found = validate(read_torch_csv(file.text, file.schedule).schedule);
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().rank == file.parameters.ranks - 1);
    CHECK(found.front().position >= 0);
  }
}

TEST_SUITE_END();

}  // namespace plumb::test

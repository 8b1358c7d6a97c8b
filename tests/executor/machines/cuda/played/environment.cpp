#include "tests/executor/machines/cuda/played/environment.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

namespace plumb::test::played {
namespace {

[[noreturn]] void refuse(const std::string& word) {
  std::fprintf(stderr, "PLUMB_PLAYED: %s is nothing that is played\n", word.c_str());
  std::exit(2);
}

/// Reads the visible devices up to the first that does not exist, as CUDA does.
void see_only(const char* numbers, Options& options) {
  std::istringstream words(numbers);
  for (std::string word; std::getline(words, word, ',');) {
    const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || std::stoi(word) >= options.devices) break;
    options.visible.push_back(std::stoi(word));
  }
  options.devices = static_cast<int>(options.visible.size());
  options.has_driver &= options.devices > 0;
}

void write_faults() {
  std::ofstream file(std::getenv("PLUMB_PLAYED_FAULTS"), std::ios::app);
  for (const std::string& fault : faults()) file << fault << "\n";
}

}  // namespace

Options options_of_environment() {
  Options options;
  const char* given = std::getenv("PLUMB_PLAYED");
  std::istringstream words(given == nullptr ? "" : given);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) refuse(word);
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    const long number = std::atol(value.c_str());
    if (name == "devices")
      options.devices = static_cast<int>(number);
    else if (name == "multiprocessors")
      options.multiprocessors = static_cast<int>(number);
    else if (name == "major")
      options.major = static_cast<int>(number);
    else if (name == "memory_mib")
      options.memory_bytes = std::int64_t{number} << 20U;
    else if (name == "seed")
      options.seed = static_cast<unsigned>(number);
    else if (name == "faulty_kernel")
      options.faulty_kernel = number;
    else if (name == "faulty_device")
      options.faulty_device = static_cast<int>(number);
    else if (name == "nccl_fails_at")
      options.nccl_fails_at = static_cast<int>(number);
    else if (name == "nccl_stalls_at")
      options.nccl_stalls_at = static_cast<int>(number);
    else if (name == "nccl_signal_at")
      options.nccl_signal_at = static_cast<int>(number);
    else if (name == "signal")
      options.signal = static_cast<int>(number);
    else if (name == "patience_ms")
      options.patience = std::chrono::milliseconds(number);
    else if (name == "launch_queue")
      options.launch_queue = static_cast<std::size_t>(number);
    else if (name == "nccl_sms")
      options.nccl_sms = static_cast<int>(number);
    else if (name == "code_kib")
      options.code_bytes = std::int64_t{number} << 10U;
    else if (name == "refuses_epilogues")
      options.refuses_epilogues = number != 0;
    else if (name == "refused_call")
      options.refused_call = number;
    else if (name == "driver" && value == "0")
      options.has_driver = false;
    else if (name == "driver" && value == "old")
      options.has_old_driver = true;
    else if (name == "green_contexts" && value == "0")
      options.knows_green_contexts = false;
    else if (name == "green_contexts" && value == "refused")
      options.gives_green_contexts = false;
    else
      refuse(word);
  }
  // CUDA reads these two at a process's first call.
  if (const char* queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"); queues != nullptr)
    options.connections = std::clamp(std::atoi(queues), 1, 32);
  const char* loading = std::getenv("CUDA_MODULE_LOADING");
  options.loads_late = loading == nullptr || std::string_view(loading) != "EAGER";
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) see_only(visible, options);
  return options;
}

void report_faults_at_exit() {
  if (std::getenv("PLUMB_PLAYED_FAULTS") != nullptr) std::atexit(write_faults);
}

}  // namespace plumb::test::played

#include "tools/checkpoint_file.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/files.h"

namespace plumb { inline namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "checkpoint.plumb";

}  // namespace

std::string checkpoint_path(const std::string& folder) {
  return (fs::path(folder) / kName).string();
}

void prepare_checkpoints(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw InputError(fmt::format("{}: this folder cannot be made: name another for the checkpoints", folder));
  std::vector<fs::path> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(fmt::format("{}.", kName)) && name.ends_with(".tmp")) left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove(path, error);
  require_writable(checkpoint_path(folder));
}

void write_checkpoint(const std::string& folder, const TrainingState& state) {
  write_file(checkpoint_path(folder), to_bytes(state));
}

TrainingState read_checkpoint(const std::string& folder) {
  const std::string path = checkpoint_path(folder);
  return training_state_from_bytes(read_file(path), path);
}

}}  // namespace plumb::tools

#include "tools/io/checkpoint_file.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/io/files.h"

namespace plumb { inline namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "checkpoint.plumb";

}  // namespace

std::string checkpoint_path(const std::string& folder) {
  return (fs::path(folder) / kName).string();
}

FileLock prepare_checkpoints(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
    throw InputError(fmt::format("{}: this folder cannot be made: name another for the checkpoints", folder));
  FileLock lock(checkpoint_path(folder) + ".lock");
  if (!lock.held_by().empty())
    throw InputError(fmt::format("{}: {} keeps its checkpoints here: wait for its end, or name another folder", folder,
                                 lock.held_by()));
  require_writable(checkpoint_path(folder));
  return lock;
}

void write_checkpoint(const std::string& folder, const TrainingState& state) {
  write_file(checkpoint_path(folder), to_bytes(state));
}

TrainingState read_checkpoint(const std::string& folder) {
  const std::string path = checkpoint_path(folder);
  return training_state_from_bytes(read_file(path), path);
}

}}  // namespace plumb::tools

#pragma once
// The checkpoint of a run: one file in the folder that the user names, replaced whole each time, so that a run that is
// killed at any moment leaves the newest one that was complete. One run at a time has the folder. What the file holds
// is written down in executor/README.md.

#include <string>

#include "executor/training/training_state.h"
#include "tools/io/file_lock.h"

namespace plumb { inline namespace tools {

/// "FOLDER/checkpoint.plumb".
std::string checkpoint_path(const std::string& folder);

/// Makes the folder if it is not there, takes it for this process as long as the lock lives ("checkpoint.plumb.lock"),
/// and clears away what killed runs have left half-written in it. Throws InputError if the folder cannot be made or
/// written to, or another run has it.
[[nodiscard]] FileLock prepare_checkpoints(const std::string& folder);

/// Throws InputError if the file cannot be written whole; then the one before stays.
void write_checkpoint(const std::string& folder, const TrainingState& state);

/// Throws InputError if there is no checkpoint, or what is there is none (training_state_from_bytes).
TrainingState read_checkpoint(const std::string& folder);

}}  // namespace plumb::tools

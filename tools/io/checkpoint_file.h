#pragma once
// The checkpoint of a run is one file in the folder that the user names. It is replaced as a whole each time, so that a
// run that is killed at any moment leaves the newest complete one. One run at a time has the folder. The README of
// executor/ lists the contents of the file.

#include <string>

#include "executor/parameters/training_state.h"
#include "tools/io/file_lock.h"

namespace plumb { inline namespace tools {

/// Returns "FOLDER/checkpoint.plumb".
std::string checkpoint_path(const std::string& folder);

/// Makes the folder if it does not exist, takes it for this process as long as the lock lives
/// ("checkpoint.plumb.lock"), and deletes the unfinished files that killed runs have left in it. Throws InputError if
/// the folder cannot be made or written to, or another run has it.
[[nodiscard]] FileLock prepare_checkpoints(const std::string& folder);

/// Replaces the checkpoint. Throws InputError if the file cannot be written whole; then the one before stays.
void write_checkpoint(const std::string& folder, const TrainingState& state);

/// Returns the state of the checkpoint. Throws InputError if there is none, or the file is no valid one
/// (training_state_from_bytes).
TrainingState read_checkpoint(const std::string& folder);

}}  // namespace plumb::tools

#pragma once
// A file is read as a whole, and it is written as a whole or not at all.

#include <functional>
#include <string>
#include <string_view>

namespace plumb { inline namespace tools {

/// Returns the contents of a file, unpacked if gzip has packed it. Throws InputError naming the path if it does not
/// exist, is a directory, cannot be read, or has more than kMostFileBytes (schedules/limits.h) of contents.
std::string read_file(const std::string& path);

/// Returns the contents without a byte order mark. Throws as read_file, and InputError with the place of the first byte
/// that is not UTF-8.
std::string read_text_file(const std::string& path);

/// Writes a file by way of a temporary one beside it, so that a reader of `path` finds all of the old or all of the new
/// contents. The new file has the old one's permissions. Temporary files that killed processes have left are deleted. A
/// symbolic link stays, and the file behind it is written. A name that ends in ".gz" is packed (gzip.h). A device, a FIFO, or the file that this process's answers go
/// to gets the bytes as they come and is never replaced. Throws InputError with the path and the remedy if the folder
/// does not exist or cannot be written, or the disk is full; then a file is as it was.
void write_file(const std::string& path, std::string_view contents);

/// Hands a text piece by piece, in order, to `take`.
using TextPieces = std::function<void(const std::function<void(std::string_view piece)>& take)>;

/// Writes a text as it is made, without holding it whole.
void write_file(const std::string& path, const TextPieces& contents);

/// Throws what write_file would throw if the folder does not exist or may not be written. Verbs call it before long
/// work begins. A device or a FIFO is not opened.
void require_writable(const std::string& path);

}}  // namespace plumb::tools

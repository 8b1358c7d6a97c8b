#pragma once
// Files, the only place that opens them. A file is read whole; it is written whole or not at all.

#include <functional>
#include <string>
#include <string_view>

namespace plumb { inline namespace tools {

/// The contents of a file. Throws InputError naming the path if it does not exist, is a directory, cannot be read,
/// or has more than kMostFileBytes (schedules/limits.h).
std::string read_file(const std::string& path);

/// As read_file, without a byte order mark; throws InputError with the place of the first byte that is not UTF-8 too.
std::string read_text_file(const std::string& path);

/// Writes a file by way of a temporary one beside it, so that whoever reads `path` finds all of the old or all of the
/// new, with the old one's permissions; what killed processes have left of such temporaries is cleared away. A symbolic
/// link stays, and the file behind it is written. A device, a FIFO, or where this process's answers go gets the bytes
/// as they come and is never replaced. Throws InputError naming the path and what to do if the folder does not exist or
/// cannot be written, or the disk is full; then a file is as it was.
void write_file(const std::string& path, std::string_view contents);

/// Hands a text piece by piece, in order, to `take`.
using TextPieces = std::function<void(const std::function<void(std::string_view piece)>& take)>;

/// The same of a text that is written as it is made, and never held whole.
void write_file(const std::string& path, const TextPieces& pieces);

/// Throws what write_file would throw for want of a folder or of the right to write there: asked before long work
/// begins. A device or a FIFO is not opened for it.
void require_writable(const std::string& path);

}}  // namespace plumb::tools

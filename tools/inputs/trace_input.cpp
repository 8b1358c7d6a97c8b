#include "tools/inputs/trace_input.h"

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/inputs/file_kinds.h"
#include "tools/io/files.h"

namespace plumb { inline namespace tools {

ChromeTrace trace_input(const std::string& file) {
  return read_as(FileKind::kTrace, file, [&] {
    const std::string text = read_text_file(file);
    try {
      return read_chrome_trace(text);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", file, error.what()));
    }
  });
}

}}  // namespace plumb::tools

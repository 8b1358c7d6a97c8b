#include "tools/pages/write_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/io/command_text.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/version.h"

namespace plumb { inline namespace tools {

void write_page(const std::string& path, Page page, const Plan* plan) {
  add_command(page, "To repeat it", fmt::format("{}\n{}", command_text(), version_text()));
  if (plan != nullptr) add_command(page, "The plan", to_json(*plan, PLUMB_VERSION).dump(2));
  write_file(path, to_html(page));
  print_note(fmt::format("wrote {}", path));
}

}}  // namespace plumb::tools

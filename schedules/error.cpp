#include "schedules/error.h"

#include <cxxabi.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <typeinfo>

#include <fmt/format.h>

namespace plumb { inline namespace schedules {
namespace {

/// Returns the readable name of the error's type, e.g. "std::out_of_range".
std::string type_name_of(const std::exception& error) {
  int status = 0;
  const char* name = typeid(error).name();
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                        std::free);
  return status == 0 ? readable.get() : name;
}

}  // namespace

std::string sentence_of(const std::exception& error) {
  if (const auto* input = dynamic_cast<const InputError*>(&error)) return input->what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr)
    return "this machine has not enough memory for that: ask for a smaller question";
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return fmt::format("{}: this cannot be reached ({}): check the path, and what you may do there",
                       file->path1().string(), file->code().message());
  if (const auto* system = dynamic_cast<const std::system_error*>(&error))
    return fmt::format("this machine refuses what that takes ({}): ask for a smaller question, or end other programs",
                       system->code().message());
  return fmt::format(
      "this is a fault of Plumb's own ({}), not of the question: report it with the command and its files",
      type_name_of(error));
}

}}  // namespace plumb::schedules

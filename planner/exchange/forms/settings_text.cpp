#include "planner/exchange/forms/settings_text.h"

#include "planner/exchange/forms/arguments_form.h"
#include "planner/exchange/forms/json_form.h"
#include "planner/exchange/forms/python_form.h"
#include "planner/exchange/forms/toml_form.h"
#include "planner/exchange/forms/yaml_form.h"

namespace plumb { inline namespace planner {
namespace {

struct Form {
  std::string (*write)(const Settings&, std::string_view head);
  Settings (*read)(std::string_view text, const std::string& file);
};

Form form_of(SettingsForm form) {
  switch (form) {
    case SettingsForm::kArguments:
      return {arguments_text, read_arguments};
    case SettingsForm::kPython:
      return {python_text, read_python};
    case SettingsForm::kToml:
      return {toml_text, read_toml};
    case SettingsForm::kYaml:
      return {yaml_text, read_yaml};
    case SettingsForm::kJson:
      break;
  }
  return {json_text, read_json};
}

}  // namespace

std::string settings_text(SettingsForm form, const Settings& settings, std::string_view head) {
  return form_of(form).write(settings, head);
}

Settings read_settings(SettingsForm form, std::string_view text, const std::string& file) {
  return form_of(form).read(text, file);
}

}}  // namespace plumb::planner

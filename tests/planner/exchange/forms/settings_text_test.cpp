#include "planner/exchange/forms/settings_text.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

using namespace plumb;
using namespace plumb::test;
using nlohmann::json;

namespace {

const Settings kSettings = {{"training.steps", 10},
                            {"training.compile", true},
                            {"training.lr", 1e-5},
                            {"model.name", "llama3"},
                            {"model.parts", json::parse(R"([["a", "b"], ["c"]])")}};

}  // namespace

TEST_CASE("every form that nests reads back what it writes") {
  for (const SettingsForm form :
       {SettingsForm::kJson, SettingsForm::kPython, SettingsForm::kToml, SettingsForm::kYaml}) {
    const std::string text = settings_text(form, kSettings, "");
    CAPTURE(text);
    Settings read = read_settings(form, text, "file");
    Settings wanted = kSettings;
    // JSON's reader sorts keys.
    std::ranges::sort(read);
    std::ranges::sort(wanted);
    CHECK(read == wanted);
  }
}

TEST_CASE("arguments read back what they write, and leave out what is false") {
  const Settings settings = {
      {"torchrun", "torchrun"}, {"--layers", 8}, {"--bf16", true}, {"--fp16", false}, {"--layout", "Et*7|t*8L"}};
  const std::string text = settings_text(SettingsForm::kArguments, settings, "#!/bin/bash\n");
  CHECK(text == "#!/bin/bash\ntorchrun \\\n  --layers 8 \\\n  --bf16 \\\n  --layout \"Et*7|t*8L\"\n");
  const Settings read = read_settings(SettingsForm::kArguments, text, "file");
  CHECK(read == Settings{{"--layers", 8}, {"--bf16", true}, {"--layout", "Et*7|t*8L"}});
}

TEST_CASE("arguments in arrays, with equal signs, quotes and comments are read") {
  const Settings read =
      read_settings(SettingsForm::kArguments, "ARGS=( --seq-length=4096 # tokens\n '--name' \"a b\" )\n", "file");
  CHECK(read == Settings{{"--seq-length", 4096}, {"--name", "a b"}});
}

TEST_CASE("TOML's comments, quoted keys, grouped digits and lists over lines are read") {
  const Settings read = read_settings(
      SettingsForm::kToml, "# job\n[a.b]\n\"c\" = 1_000 # many\nd = [\n  'x#y',\n  2,\n]\ne = -1.5e3\n", "file");
  CHECK(read == Settings{{"a.b.c", 1000}, {"a.b.d", json::parse(R"(["x#y", 2])")}, {"a.b.e", -1500.0}});
}

TEST_CASE("YAML's nesting, lists by lines, null and bare words are read") {
  const Settings read =
      read_settings(SettingsForm::kYaml,
                    "---\na:\n  b: word\n  c: null\n  items:\n  - 1\n  - two\nd:\n    e: no\nf: 'q: r'\n", "file");
  CHECK(
      read ==
      Settings{
          {"a.b", "word"}, {"a.c", nullptr}, {"a.items", json::parse(R"([1, "two"])")}, {"d.e", false}, {"f", "q: r"}});
}

TEST_CASE("assignments of Python are read, also as a command line overrides them, and code is not run") {
  const Settings read =
      read_settings(SettingsForm::kPython,
                    "import torch\ncfg.model.tp = 4\nif cfg.model.tp == 4:\n    cfg.model.dtype = torch.bfloat16\n"
                    "model.cp=2\nx = 1\ncfg.a.b = None\n",
                    "file");
  CHECK(read == Settings{{"model.tp", 4}, {"model.dtype", "torch.bfloat16"}, {"model.cp", 2}, {"a.b", nullptr}});
}

TEST_CASE("a fault is told with its line") {
  check_refused<SpecError>([] { read_settings(SettingsForm::kToml, "[a]\nb = 1\nnonsense\n", "job.toml"); },
                           "job.toml:3", "key = value");
  check_refused<SpecError>([] { read_settings(SettingsForm::kToml, "[a]\nb = [1, 2\n", "job.toml"); }, "job.toml:2",
                           "bracket");
  check_refused<SpecError>([] { read_settings(SettingsForm::kToml, "b = {x = 1}\n", "job.toml"); }, "job.toml:1",
                           "not read");
  check_refused<SpecError>([] { read_settings(SettingsForm::kYaml, "a: *anchor\n", "c.yaml"); }, "c.yaml:1",
                           "not read");
  check_refused<SpecError>([] { read_settings(SettingsForm::kYaml, "\ta: 1\n", "c.yaml"); }, "c.yaml:1", "tabs");
  check_refused<SpecError>([] { read_settings(SettingsForm::kArguments, "--a \"b\n", "run.sh"); }, "run.sh:1", "quote");
  check_refused<SpecError>(
      [] { read_settings(SettingsForm::kToml, "a = " + std::string(100, '[') + std::string(100, ']'), "d.toml"); },
      "d.toml:1", "too deep");
}

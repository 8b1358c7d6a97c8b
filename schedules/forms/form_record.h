#pragma once
// Notes what the readers of Plumb's own JSON files ask of them, and says it as a JSON Schema. The readers are thus the
// only place that knows a form.
//
//   FormRecord record;
//   {
//     const FormRecord::Scope recording(record);
//     for (const auto& [name, text] : presets) parse_cluster(text, name);  // each reads by StrictObject
//   }
//   record.schema("A cluster").dump(1);

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace plumb { inline namespace schedules {

class FormRecord {
 public:
  /// From its construction to its end, every StrictObject of this thread notes in `record` what it is asked.
  class Scope {
   public:
    explicit Scope(FormRecord& record);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    FormRecord* before_;
  };

  /// Returns the record of the innermost scope of this thread; nullptr outside of all.
  static FormRecord* current();

  // A reader says what it does, as follows. Places are those of StrictObject ("FILE: path.to.object"), and the numbers of
  // list entries do not count. `object` tells the objects of a document apart, of which several may have one place.
  void object_opened(std::string_view place, const void* object);
  void object_finished(std::string_view place);  ///< any other key is refused
  void key_may_be_absent(std::string_view place, std::string_view key);
  /// The key was read as a value of this schema, {"type": "string"} for example. A number has a "maximum", and may also
  /// stand beside its source. An object or list of objects is read as `kObject` or `kObjects`, whose schemas follow from
  /// what is asked of them.
  void key_read(std::string_view place, const void* object, std::string_view key, const nlohmann::ordered_json& form);
  static const nlohmann::ordered_json kObject, kObjects, kAnything;

  /// Returns a JSON Schema (draft 2020-12) with that title. A key is required if every object at its place was asked
  /// for it and none could have been without it. A key that may be absent may also be null. An object whose keys are all
  /// read alike, and which is not finished, is a map of any keys.
  nlohmann::ordered_json schema(std::string_view title) const;

 private:
  using Object = std::pair<int, const void*>;  ///< number of the document, object in it
  struct KeyForm {
    std::set<Object> readers;
    bool optional = false;
    std::vector<nlohmann::ordered_json> forms;
  };
  struct ObjectForm {
    std::set<Object> opened;
    bool is_finished = false;
    std::map<std::string, KeyForm> keys;
  };

  nlohmann::ordered_json object_schema(const std::string& path) const;
  nlohmann::ordered_json key_schema(const std::string& path, const KeyForm& key) const;

  int document_ = 0;
  std::map<std::string, ObjectForm> objects_;  ///< by path without numbers: "", "device.attention", "nodes[]"
};

}}  // namespace plumb::schedules

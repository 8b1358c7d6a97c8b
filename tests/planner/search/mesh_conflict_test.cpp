#include "planner/search/mesh_conflict.h"

#include <doctest/doctest.h>

#include "planner/search/layout_conflict.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

std::string conflict(const std::string& layout, const std::string& model = "llama-3.2-1b", int devices = 6) {
  const ModelSpec of = preset_model(model);
  const TrainingSpec training = of.graph ? TrainingSpec{.global_batch = 16, .sequence = 1} : kSmallTraining;
  return layout_conflict(of, training, devices, layout_of(parse_layout(layout))).value_or("");
}

/// True if the text has all of these words.
bool says(const std::string& text, const std::vector<std::string>& words) {
  return std::ranges::all_of(words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

}  // namespace

TEST_CASE("meshes that can be have no conflict") {
  CHECK(conflict("meshes=dp2tp2:tp2,mbs=2").empty());
  CHECK(conflict("meshes=dp2tp2:tp2,mbs=2,sp=1,zero=1,recompute=full").empty());
  CHECK(conflict("meshes=dp4:dp2,mbs=4", "alexnet").empty());
  CHECK_FALSE(mesh_conflict(preset_model("llama-3.2-1b"), 8, {.data = 2, .pipeline = 2}));  // no meshes at all
}

TEST_CASE("meshes that cannot be are refused in a sentence with the remedy") {
  CHECK(says(conflict("meshes=dp2tp2:tp2,mbs=2,pp=3"), {"2 pipeline ranks and there are 3", "give each one"}));
  CHECK(says(conflict("meshes=dp4:tp2,mbs=2"), {"4 data ranks", "micro-batches of 2", "another mesh or micro-batch"}));
  CHECK(says(conflict("dp=2,meshes=dp3:tp3,mbs=2"), {"3 data ranks", "dp=2 pipelines"}));
  CHECK(says(conflict("meshes=dp2tp2:tp4,mbs=2"), {"need 8 devices", "has 6", "sum up to 6"}));
  CHECK(says(conflict("meshes=dp2tp2:tp2,mbs=2,tp=2"), {"leave tp=2 away"}));
  CHECK(says(conflict("meshes=dp4:dp2,mbs=4,sp=1"), {"sp=1", "a mesh with tp"}));
  CHECK(says(conflict("meshes=dp4:dp2,mbs=4,bucket_mib=25"), {"leave bucket_mib away"}));
  CHECK(says(conflict("meshes=dp4:dp2,mbs=4,offload=optimizer"), {"no offload"}));
  CHECK(says(conflict("meshes=dp4:dp2,mbs=4,zero=1,shard=2"), {"leave shard away"}));
  CHECK(says(conflict("meshes=dp4:dp2,mbs=4,schedule=chimera"), {"copies of a stage", "schedule=1f1b"}));
  CHECK(says(conflict("meshes=tp3:tp3:tp2,mbs=1", "llama-3.2-1b", 8), {"tp=3 does not divide the 32 heads"}));
  CHECK(says(conflict("meshes=dp4:dp2,mbs=4", "mixtral-nano"), {"mixtures of experts", "give all pipeline ranks one"}));
  CHECK(says(conflict("meshes=dp4:tp2,mbs=4", "alexnet"), {"tp=2", "layer graph"}));
  CHECK(says(conflict("meshes=dp4:dp2,mbs=4,v=2,schedule=interleaved", "alexnet"), {"one stage a rank", "v=1"}));
}

}  // namespace plumb::test

#include "planner/score/row_spelling.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace plumb::test {

using nlohmann::json;

TEST_CASE("a rate with micro-batches that do not divide the batch is read as that of whole ones") {
  const auto read = [](const char* text) { return in_schema(nlohmann::json::parse(text)); };
  const nlohmann::json rate = read(R"({"gpus": 8, "gbs": 1024, "mbs": 6, "measured": {"tokens_per_s_per_gpu": 3032}})");
  CHECK(rate["gbs"] == 1008);
  CHECK(rate["gbs_printed"] == 1024);
  CHECK(read(R"({"gpus": 8, "gbs": 1024, "mbs": 4, "measured": {"tokens_per_s": 3032}})")["gbs"] == 1024);
  CHECK(read(R"({"gpus": 8, "gbs": 1024, "mbs": 6, "measured": {"step_time_s": 3}})")["gbs"] == 1024);
  CHECK(read(R"({"gpus": 8, "gbs": 16, "mbs": 6, "measured": {"tokens_per_s": 3032}})")["gbs"] == 16);
  CHECK(read(R"({"gpus": 8, "gbs": 1e300, "mbs": 1e300, "measured": {"tokens_per_s": 1}})")["gbs"] == 1e300);
}

TEST_CASE("fields in other spellings come under the schema's names") {
  const json row = in_schema(json::parse(R"({
      "num_gpus": "1,024", "Tensor-Model-Parallel-Size": 8, "pipeline_parallel_size": "4", "micro_batch_size": 2,
      "global_batch_size": 512, "dtype": "bf16", "model": {"num_hidden_layers": "32", "hidden_size": 4096,
      "num_key_value_heads": 8, "name": "70"}, "measured": {"iteration_time_s": 2.5, "tokens/sec/GPU": "3,500"}})"));
  CHECK(row["gpus"] == 1024);
  CHECK(row["tp"] == 8);
  CHECK(row["pp"] == 4);
  CHECK(row["mbs"] == 2);
  CHECK(row["gbs"] == 512);
  CHECK(row["precision"] == "bf16");
  CHECK(row["model"]["layers"] == 32);
  CHECK(row["model"]["kv_heads"] == 8);
  CHECK(row["model"]["name"] == "70");
  CHECK(row["measured"]["step_time_s"] == 2.5);
  CHECK(row["measured"]["tokens_per_s_per_gpu"] == 3500);
}

TEST_CASE("a model that is named after a GPT has a plain MLP, unless the row says more") {
  const auto gated = [](json model) {
    return in_schema({{"model", std::move(model)}})["model"].value("gated_mlp", json());
  };
  CHECK(gated("GPT-3 175B") == false);
  CHECK(gated({{"name", "BLOOM 176B"}}) == false);
  CHECK(gated({{"name", "OPT 66B"}}) == false);
  CHECK(gated({{"name", "GPT 7B"}, {"swiglu", true}}) == true);
  CHECK(gated("GPT-OSS 120B").is_null());
  CHECK(gated("Adopted 7B").is_null());
}

TEST_CASE("what is printed under the schema's name stays") {
  const json row = in_schema({{"gpus", 8},
                              {"num_gpus", 16},
                              {"gbs", 64},
                              {"gbs_tokens", 4096},
                              {"model", {{"seq", 1024}, {"sequence_length", 2048}}},
                              {"vpp", "one layer per chunk"},
                              {"recompute", "none (not stated)"},
                              {"measured", {{"step_time_s", 1}, {"iteration_time", 2}}}});
  CHECK(row["gpus"] == 8);
  CHECK(row["gbs"] == 64);
  CHECK(row["model"]["seq"] == 1024);
  CHECK(row["vpp"] == "one layer per chunk");
  CHECK(row["recompute"] == "none (not stated)");
  CHECK(row["measured"]["step_time_s"] == 1);
}

TEST_CASE("devices, batch and rates follow from what is printed instead") {
  const json by_tokens = in_schema(json::parse(R"({"nodes": 4, "gpus_per_node": 8, "gbs_tokens": 4194304, "seq": 4096,
      "model": "Llama 3 8B", "recompute": true, "measured": {"mfu": 0.45, "pflops": 6.4}})"));
  CHECK(by_tokens["gpus"] == 32);
  CHECK(by_tokens["gbs"] == 1024);
  CHECK(by_tokens["model"] == json{{"name", "Llama 3 8B"}, {"seq", 4096}});
  CHECK(by_tokens["recompute"] == "full");
  CHECK(by_tokens["measured"]["mfu_pct"].get<double>() == doctest::Approx(45));
  CHECK(by_tokens["measured"]["tflops_per_gpu"].get<double>() == doctest::Approx(200));

  const json accumulated = in_schema(json::parse(R"({"gpus": 64, "nodes": 8, "tp": 4, "pp": 2, "mbs": 2, "ga": 16,
      "measured": {"days": 10, "tokens": 8.64e11}})"));
  CHECK(accumulated["gpus_per_node"] == 8);
  CHECK(accumulated["gbs"] == 256);
  CHECK(accumulated["measured"]["tokens_per_s"].get<double>() == doctest::Approx(1e6));
}

TEST_CASE("a row of a flat table has its measurements and sizes sorted to their parts") {
  const json row = in_schema(json::parse(R"({"model": "my-gpt", "num_layers": 24, "hidden_size": 2048, "seq_len": 2048,
      "num_gpus": 16, "tensor_parallel": 2, "iteration_time": 6.5, "peak_mem_gb": 41.5, "mfu": 0.4})"));
  CHECK(row["model"] == json{{"name", "my-gpt"},
                             {"num_layers", 24},
                             {"hidden_size", 2048},
                             {"seq_len", 2048},
                             {"layers", 24},
                             {"hidden", 2048},
                             {"gated_mlp", false},
                             {"seq", 2048}});
  CHECK(row["measured"]["step_time_s"] == 6.5);
  CHECK(row["measured"]["peak_mem_gb"] == 41.5);
  CHECK(row["measured"]["mfu_pct"].get<double>() == doctest::Approx(40));
  CHECK(row["gpus"] == 16);
  // A row whose fields are already in their parts stays as it is.
  const json sorted =
      in_schema(json::parse(R"({"model": {"name": "m"}, "layers": 4, "step_time_s": 1, "measured": {}})"));
  CHECK(sorted["measured"].empty());
  CHECK(sorted["model"] == json{{"name", "m"}});
}

TEST_CASE("all words that name what trained are joined") {
  const json row =
      in_schema({{"framework", "Megatron-Core 0.10"}, {"source", {{"repo", "owner/name"}, {"paper", "X"}}}});
  CHECK(row["named"] == "Megatron-Core 0.10; owner/name; X");
  CHECK(in_schema({{"title", "Paxml 5B"}, {"source", {{"repo", "owner/name"}}}})["named"] == "Paxml 5B; owner/name");
  CHECK_FALSE(in_schema({{"gpus", 8}}).contains("named"));
}

TEST_CASE("odd values are left for those who read them") {
  const json odd = json::parse(R"({"gpus": "many", "tp": [], "model": 7, "measured": "fast", "recompute": null,
                                   "nodes": 0, "gpus_per_node": -8, "gbs_tokens": 1e308, "mbs": 1e308, "ga": 1e308})");
  const json row = in_schema(odd);
  CHECK(row["gpus"] == "many");
  CHECK(row["model"] == 7);
  CHECK(row["measured"] == "fast");
}

}  // namespace plumb::test

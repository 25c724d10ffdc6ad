// What is too large to count, or would change nothing, is refused by name before anything is built.
#include <fmt/format.h>

#include "sim/workload/limits.h"
#include "test/workload/support.h"
#include "test/workload/tiny_models.h"

namespace hyperoffload {
namespace {

// tiny_llama() with another value for a key.
std::string refused_size(const std::string& key, const std::string& old, std::int64_t value) {
  std::string config = tiny_llama();
  const std::string from = fmt::format("\"{}\": {}", key, old);
  config.replace(config.find(from), from.size(), fmt::format("\"{}\": {}", key, value));
  return input_error([&] { parse_model_config(config, "m.json"); });
}

template <class Change>
std::string refusal(Change change, const std::string& config = small_llama()) {
  WorkloadSpec spec;
  spec.phase = Phase::kDecode;
  spec.sequence = 64;
  spec.source = "w.yaml";
  change(spec);
  return input_error([&] { generate_trace(spec, parse_model_config(config, "m.json")); });
}

}  // namespace

TEST_CASE("a size in a config has a limit, which the refusal names with file and key") {
  for (int power : {25, 33, 40, 62})
    CHECK(contains(refused_size("hidden_size", "8", std::int64_t{1} << power),
                   fmt::format("m.json: hidden_size: found {}, expected a whole number from 1 to {}",
                               std::int64_t{1} << power, std::int64_t{1} << 24)));
}

TEST_CASE("sizes that are fine alone and too large together are refused") {
  const std::int64_t head = std::int64_t{1} << 23;
  const std::string wide = input_error(
      [&] { parse_model_config(tiny_llama(fmt::format(R"(, "head_dim": {})", 32 * head / 16)), "m.json"); });
  CHECK(wide == "no InputError");  // 2^24 x 4 heads, hidden 8
  std::string config = tiny_llama(fmt::format(R"(, "head_dim": {})", 2 * head));
  config.replace(config.find("\"num_attention_heads\": 4"), 24, "\"num_attention_heads\": 64");
  CHECK(contains(input_error([&] { parse_model_config(config, "m.json"); }),
                 fmt::format("m.json: layers.0.q_proj: found a matrix of {} x 8", 64 * 2 * head)));
  config = tiny_llama();
  config.replace(config.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 90000");
  config.replace(config.find("\"intermediate_size\": 12"), 23, "\"intermediate_size\": 16777216");
  config.replace(config.find("\"hidden_size\": 8"), 16, "\"hidden_size\": 4194304");
  const std::string many = input_error([&] { parse_model_config(config, "m.json"); });
  CHECK(contains(many, "hidden_size, vocab_size, num_hidden_layers"));
  CHECK(contains(many, "parameters together"));
}

TEST_CASE("more elements than a tensor may have are refused before any product of them wraps") {
  const std::string config = small_llama();
  CHECK(contains(refusal([](WorkloadSpec& s) { s.phase = Phase::kTrain, s.batch = std::int64_t{1} << 26; },
                         [] {
                           std::string wide = small_llama();
                           wide.replace(wide.find("\"vocab_size\": 30"), 16, "\"vocab_size\": 16777216");
                           return wide;
                         }()),
                 "w.yaml: batch: found "));
  CHECK_THROWS_AS(bytes_of(std::int64_t{1} << 60, DataType::kBf16), InputError);
  CHECK_THROWS_AS(bytes_of(-1, DataType::kBf16), InputError);
}

TEST_CASE("counts that would make a trace of millions of ops are refused, the key named") {
  std::string config = small_llama();
  config.replace(config.find("4096"), 4, "4294967296");
  const auto found = [&](auto change) { return refusal(change, config); };
  CHECK(contains(found([](WorkloadSpec& s) { s.steps = 1'000'000; }),
                 "w.yaml: steps: found 1000000 passes over the layers: a trace of about"));
  CHECK(
      contains(found([](WorkloadSpec& s) { s.phase = Phase::kPrefill, s.sequence = 1'000'000, s.chunk = 1; }),
               "w.yaml: chunk: found 1000000 passes"));
  CHECK(contains(found([](WorkloadSpec& s) { s.sequence = 1'000'000'000, s.kv_block = 1; }),
                 "w.yaml: kv_block: found 1 tokens a block: a trace of about 4000000004 tensors"));
  CHECK(contains(found([](WorkloadSpec& s) { s.sequence = 1'000'000, s.kv_block = 1, s.steps = 100; }),
                 "w.yaml: kv_block: found 1 tokens a block and 100 passes"));
  CHECK(contains(
      found([](WorkloadSpec& s) { s.phase = Phase::kTrain, s.batch = s.train.microbatches = 1'000'000; }),
      "w.yaml: train.microbatches: found 1000000 passes"));
  std::string deep = small_llama();
  deep.replace(deep.find("\"num_hidden_layers\": 4"), 22, "\"num_hidden_layers\": 100000");
  CHECK(contains(refusal([](WorkloadSpec& s) { s.phase = Phase::kTrain; }, deep),
                 "m.json: num_hidden_layers: found 100000 layers: a trace of about"));
}

TEST_CASE("a prediction module of a model type published without one is refused by its key") {
  CHECK(contains(
      input_error([] { parse_model_config(small_llama(R"(, "num_nextn_predict_layers": 1)"), "m.json"); }),
      "m.json: num_nextn_predict_layers: found 1, expected 0"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.mtp = 1; }), "num_nextn_predict_layers"));
}

TEST_CASE("keys that would change nothing are refused") {
  CHECK(contains(refusal([](WorkloadSpec& s) { s.phase = Phase::kPrefill, s.sparse.top_k = 4; }),
                 "w.yaml: sparse: found the key, expected none: it belongs to phase decode or mixed"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.sparse.given = true; }), "w.yaml: sparse: found no top_k"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.sparse.top_k = 4, s.sparse.reuse = 0.5; }),
                 "w.yaml: sparse.reuse: found 0.5, expected 0, or a kv_block"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.experts.routing = Routing::kRandom; }),
                 "w.yaml: experts: found the key, expected none: the model has no experts"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.published_weights = true; }),
                 "w.yaml: weight_dtype: found published"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.train.given = true; }), "w.yaml: train: found the key"));
  const auto training = [](auto change) {
    return refusal([&](WorkloadSpec& s) {
      s.phase = Phase::kTrain;
      change(s);
    });
  };
  CHECK(contains(training([](WorkloadSpec& s) { s.kv_block = 4; }), "w.yaml: kv_block: found 4"));
  CHECK(contains(training([](WorkloadSpec& s) { s.kv_dtype = DataType::kFp8; }),
                 "w.yaml: kv_dtype: found fp8"));
  CHECK(contains(training([](WorkloadSpec& s) {
                   s.train.recompute = Recompute::kLayers;
                   s.train.recompute_layers = 5;
                 }),
                 "w.yaml: train.recompute_layers: found 5, expected at most the 4 layers of a stage"));
  CHECK(contains(
      training([](WorkloadSpec& s) { s.train.optimizer = "none", s.train.optimizer_on_host = true; }),
      "w.yaml: train.optimizer_on: found host"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.parallel.virtual_stages = 9; }),
                 "w.yaml: parallel.virtual_stages: found 9, expected 1, unless training"));
}

TEST_CASE("a window that a model type doesn't have, or that isn't in use, is refused") {
  const auto parsed = [](const std::string& type, const std::string& more) {
    std::string config = small_llama(more);
    config.replace(config.find("llama"), 5, type);
    return input_error([&] { parse_model_config(config, "m.json"); });
  };
  const std::string types =
      R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention"])";
  CHECK(contains(parsed("llama", R"(, "sliding_window": 8)"),
                 "m.json: sliding_window: found 8, expected none"));
  CHECK(contains(parsed("llama", types), "m.json: layer_types: found sliding_attention"));
  CHECK(contains(parsed("qwen3", types + R"(, "sliding_window": 8)"), "m.json: layer_types: found"));
  CHECK(parsed("qwen3", types + R"(, "sliding_window": 8, "use_sliding_window": true)") == "no InputError");
}

TEST_CASE("a size that isn't a number is refused as what it is") {
  std::string config = tiny_llama();
  config.replace(config.find("\"hidden_size\": 8"), 16, "\"hidden_size\": NaN");
  CHECK(contains(input_error([&] { parse_model_config(config, "m.json"); }),
                 "m.json: hidden_size: found null (or NaN, or Infinity), expected a whole number from 1"));
}

TEST_CASE("text that isn't JSON is refused by line and column in one sentence") {
  CHECK(input_error([] { parse_model_config("{\n  \"a\": 1,\n  }", "m.json"); }) ==
        "m.json: line 3, column 3: found text that isn't JSON in UTF-8, expected a HuggingFace config.json");
  CHECK(contains(input_error([] { parse_model_config("{\"a\": \"\xff\"}", "m.json"); }),
                 "m.json: line 1, column 8"));
}

}  // namespace hyperoffload

// Reading config.json: what is understood, what is refused and how.
#include "sim/workload/model_figures.h"
#include "test/workload/support.h"

namespace hyperoffload {
namespace {

std::string refusal(const std::string& more) {
  return input_error([&] { parse_model_config(tiny_llama(more), "tiny.json"); });
}

}  // namespace

TEST_CASE("a key nobody understands is an error that names it") {
  CHECK(contains(refusal(R"(, "num_memory_slots": 4)"), "tiny.json: num_memory_slots: found 4"));
}

TEST_CASE("keys that change no size and no work are passed over") {
  const ModelConfig model = parse_model_config(
      tiny_llama(R"(, "bos_token_id": 1, "rope_theta": 1e4, "attention_dropout": 0.0)"), "tiny.json");
  CHECK(model.layers.size() == 2);
}

TEST_CASE("odd values are refused by name") {
  CHECK(contains(input_error([] { parse_model_config("{\"model_type\": \"abacus\"}", "a.json"); }),
                 "a.json: model_type: found \"abacus\""));
  CHECK(contains(input_error([] { parse_model_config("{\"model_type\": \"llama\"", "a.json"); }),
                 "a.json: line 1, column 23: found text that isn't JSON"));
  CHECK(contains(input_error([] { parse_model_config("{\"a\": 1, \"a\": 2}", "a.json"); }),
                 "the key \"a\" twice"));
  CHECK(contains(input_error([] { load_model_config("/nowhere/config.json"); }),
                 "/nowhere/config.json: found "));
}

TEST_CASE("null heads, zero layers and heads that don't fit are refused by name") {
  const auto parse = [](const std::string& key, const std::string& value) {
    std::string text = tiny_llama();
    const std::size_t at = text.find("\"" + key + "\"");
    const std::size_t end = text.find_first_of(",}", at);
    text.replace(at, end - at, "\"" + key + "\": " + value);
    return input_error([&] { parse_model_config(text, "tiny.json"); });
  };
  CHECK(contains(parse("num_key_value_heads", "null"), "tiny.json: num_key_value_heads: found null"));
  CHECK(contains(parse("num_hidden_layers", "0"),
                 "num_hidden_layers: found 0, expected a whole number from 1 to 16777216"));
  CHECK(contains(parse("num_attention_heads", "null"), "num_attention_heads: found null"));
  CHECK(contains(parse("num_attention_heads", "3"),
                 "num_key_value_heads: found 2, expected a divisor of num_attention_heads = 3"));
  CHECK(contains(parse("hidden_size", "4096.5"), "hidden_size: found 4096.5"));
  CHECK(contains(parse("hidden_act", "\"relu6\""), "hidden_act: found \"relu6\""));
}

TEST_CASE("Infinity, as HuggingFace writes it, is read as null") {
  const ModelConfig model =
      parse_model_config(tiny_llama(R"(, "temperature": Infinity, "prefix": "Infinity")"), "tiny.json");
  CHECK(model.hidden == 8);
}

}  // namespace hyperoffload

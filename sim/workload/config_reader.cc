#include "sim/workload/config_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"

namespace hyperoffload {
namespace {

using nlohmann::json;

// Keys that change neither a tensor's size nor an op's work.
const std::set<std::string>& harmless_keys() {
  static const std::set<std::string> keys = {"_attn_implementation_autoset",
                                             "_name_or_path",
                                             "architectures",
                                             "attention_dropout",
                                             "attn_pdrop",
                                             "auto_map",
                                             "aux_loss_alpha",
                                             "bad_words_ids",
                                             "begin_suppress_tokens",
                                             "bos_token_id",
                                             "chunk_size_feed_forward",
                                             "decoder_start_token_id",
                                             "diversity_penalty",
                                             "do_sample",
                                             "early_stopping",
                                             "embd_pdrop",
                                             "encoder_no_repeat_ngram_size",
                                             "eos_token_id",
                                             "ep_size",
                                             "expert_dropout",
                                             "exponential_decay_length_penalty",
                                             "finetuning_task",
                                             "for_llm_compressor",
                                             "forced_bos_token_id",
                                             "forced_eos_token_id",
                                             "hidden_dropout",
                                             "id2label",
                                             "initializer_range",
                                             "input_jitter_noise",
                                             "is_decoder",
                                             "label2id",
                                             "layer_norm_eps",
                                             "layer_norm_epsilon",
                                             "layernorm_epsilon",
                                             "length_penalty",
                                             "max_length",
                                             "min_length",
                                             "no_repeat_ngram_size",
                                             "norm_eps",
                                             "norm_epsilon",
                                             "num_beam_groups",
                                             "num_beams",
                                             "num_return_sequences",
                                             "output_attentions",
                                             "output_hidden_states",
                                             "output_router_logits",
                                             "output_scores",
                                             "pad_token_id",
                                             "prefix",
                                             "pretraining_tp",
                                             "problem_type",
                                             "remove_invalid_values",
                                             "repetition_penalty",
                                             "resid_pdrop",
                                             "return_dict",
                                             "return_dict_in_generate",
                                             "rms_norm_eps",
                                             "rope_interleave",
                                             "rope_parameters",
                                             "rope_scaling",
                                             "rope_theta",
                                             "router_aux_loss_coef",
                                             "router_jitter_noise",
                                             "sep_token_id",
                                             "seq_aux",
                                             "summary_activation",
                                             "summary_first_dropout",
                                             "summary_proj_to_labels",
                                             "summary_type",
                                             "summary_use_proj",
                                             "suppress_tokens",
                                             "task_specific_params",
                                             "temperature",
                                             "tf_legacy_loss",
                                             "tokenizer_class",
                                             "top_k",
                                             "top_p",
                                             "torchscript",
                                             "transformers_version",
                                             "typical_p",
                                             "use_bfloat16",
                                             "use_cache"};
  return keys;
}

std::string short_text(const json& value) {
  std::string text = value.dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// HuggingFace's writer allows Infinity and NaN; JSON doesn't. Outside strings they become null.
std::string without_bare_words(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) {
      out.append(text, i, 2);
      i += 2;
      continue;
    }
    if (c == '"') in_string = !in_string;
    bool replaced = false;
    if (!in_string)
      for (const char* word : {"-Infinity", "Infinity", "NaN"})
        if (text.compare(i, std::string(word).size(), word) == 0) {
          out += "null";
          i += std::string(word).size();
          replaced = true;
          break;
        }
    if (!replaced) out += text[i++];
  }
  return out;
}

// "FILE: line 3, column 7", of the `byte`-th byte.
std::string place_in(const std::string& text, std::size_t byte, const std::string& source) {
  const std::size_t end = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const auto from = text.begin(), to = from + static_cast<std::ptrdiff_t>(end);
  const std::size_t start = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  return fmt::format("{}: line {}, column {}", source, 1 + std::count(from, to, '\n'),
                     start == std::string::npos ? end + 1 : end - start);
}

}  // namespace

json parse_config_json(const std::string& text, const std::string& source) {
  std::vector<std::set<std::string>> open;
  std::string duplicate;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      duplicate = value.get<std::string>();
    return true;
  };
  const std::string readable = without_bare_words(text);
  json root;
  try {
    root = json::parse(readable, watch);
  } catch (const json::parse_error& e) {
    throw InputError(place_in(readable, e.byte, source), "text that isn't JSON in UTF-8",
                     "a HuggingFace config.json");
  } catch (const json::exception&) {  // a number beyond any type
    throw InputError(source, "a number that is out of range", "a HuggingFace config.json");
  }
  if (!duplicate.empty())
    throw InputError(source, fmt::format("the key \"{}\" twice", duplicate), "each key once");
  if (!root.is_object()) throw InputError(source, short_text(root), "a JSON object");
  return root;
}

ConfigReader::ConfigReader(const json& object, std::string source, std::string prefix)
    : object_(object), source_(std::move(source)), prefix_(std::move(prefix)) {}

std::string ConfigReader::where(const std::string& key) const { return source_ + ": " + prefix_ + key; }

void ConfigReader::fail(const std::string& key, const std::string& found, const std::string& expected) const {
  throw InputError(where(key), found, expected);
}

std::string ConfigReader::shown(const std::string& key) const {
  const auto it = object_.find(key);
  return it == object_.end() ? "nothing" : short_text(*it);
}

const json* ConfigReader::raw(const std::string& key) {
  seen_.insert(key);
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool ConfigReader::has(const std::string& key) { return raw(key) != nullptr; }

std::int64_t ConfigReader::whole(const std::string& key, std::int64_t least, std::int64_t most) {
  const json* value = raw(key);
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  if (!value) fail(key, object_.contains(key) ? "null (or NaN, or Infinity)" : "nothing", expected);
  if (!value->is_number_integer() || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most)
    fail(key, shown(key), expected);
  return value->get<std::int64_t>();
}

std::int64_t ConfigReader::count(const std::string& key) { return whole(key, 1); }
std::int64_t ConfigReader::length(const std::string& key) { return whole(key, 1, kMostLength); }
std::int64_t ConfigReader::count(const std::string& key, std::int64_t fallback) {
  return has(key) ? whole(key, 1) : fallback;
}
std::int64_t ConfigReader::count_or_zero(const std::string& key, std::int64_t fallback) {
  return has(key) ? whole(key, 0) : fallback;
}

std::int64_t ConfigReader::count_of(const std::vector<std::string>& keys) {
  std::int64_t value = 0;
  std::string from;
  for (const std::string& key : keys) {
    if (!has(key)) continue;
    const std::int64_t mine = whole(key, 1);
    if (!from.empty() && mine != value)
      fail(key, std::to_string(mine), fmt::format("{} as in \"{}\"", value, from));
    value = mine;
    from = key;
  }
  if (from.empty())
    fail(keys.front(), shown(keys.front()), fmt::format("a whole number from 1 to {}", kMostCount));
  return value;
}

bool ConfigReader::flag(const std::string& key, bool fallback) {
  const json* value = raw(key);
  if (!value) return fallback;
  if (!value->is_boolean()) fail(key, shown(key), "true or false");
  return value->get<bool>();
}

std::string ConfigReader::text(const std::string& key) {
  const json* value = raw(key);
  if (!value || !value->is_string()) fail(key, shown(key), "a text");
  return value->get<std::string>();
}

std::string ConfigReader::text(const std::string& key, const std::string& fallback) {
  return has(key) ? text(key) : fallback;
}

std::vector<std::string> ConfigReader::texts(const std::string& key) {
  const json* value = raw(key);
  if (!value || !value->is_array()) fail(key, shown(key), "a list of texts");
  std::vector<std::string> out;
  for (const json& item : *value) {
    if (!item.is_string()) fail(key, short_text(item), "a text");
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<std::int64_t> ConfigReader::counts(const std::string& key) {
  const json* value = raw(key);
  if (!value || !value->is_array()) fail(key, shown(key), "a list of whole numbers");
  std::vector<std::int64_t> out;
  for (const json& item : *value) {
    if (!item.is_number_integer() || item.get<std::int64_t>() < 0 || item.get<std::int64_t>() > kMostCount)
      fail(key, short_text(item), fmt::format("a whole number from 0 to {}", kMostCount));
    out.push_back(item.get<std::int64_t>());
  }
  return out;
}

ConfigReader ConfigReader::child(const std::string& key) {
  const json* value = raw(key);
  if (!value || !value->is_object()) fail(key, shown(key), "an object");
  return ConfigReader(*value, source_, prefix_ + key + ".");
}

void ConfigReader::ignore(const std::vector<std::string>& keys) { seen_.insert(keys.begin(), keys.end()); }

void ConfigReader::only(const std::string& key, const std::vector<std::string>& harmless) {
  const json* value = raw(key);
  if (!value) return;
  const std::string text = value->dump();
  if (std::find(harmless.begin(), harmless.end(), text) == harmless.end())
    fail(key, shown(key), fmt::format("{}: anything else is not supported", fmt::join(harmless, " or ")));
}

void ConfigReader::finish() const {
  for (const auto& [key, value] : object_.items())
    if (!seen_.count(key) && !harmless_keys().count(key))
      fail(key, short_text(value), "a key this program understands: it may change the model's size or work");
}

}  // namespace hyperoffload

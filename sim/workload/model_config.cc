// Entry of the config reader: the wrapper of multi-modal models, then the family by `model_type`.
#include "sim/workload/model_config.h"

#include <fmt/format.h>

#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"
#include "sim/workload/config_reader.h"
#include "sim/workload/limits.h"
#include "sim/workload/model_families.h"

namespace hyperoffload {
namespace {

using Reader = void (*)(ConfigReader&, ModelConfig&);
struct Family {
  const char* model_type;
  Reader read;
};

constexpr Family kFamilies[] = {{"llama", read_llama_like},
                                {"mistral", read_llama_like},
                                {"qwen2", read_llama_like},
                                {"qwen3", read_llama_like},
                                {"mimo", read_llama_like},
                                {"qwen3_vl_text", read_llama_like},
                                {"gemma", read_gemma},
                                {"gemma2", read_gemma},
                                {"gemma3_text", read_gemma},
                                {"gemma4_text", read_gemma},
                                {"phi", read_phi},
                                {"phi3", read_phi},
                                {"gpt2", read_gpt2},
                                {"opt", read_opt},
                                {"nemotron-nas", read_nemotron_nas},
                                {"mixtral", read_mixtral},
                                {"phimoe", read_mixtral},
                                {"qwen2_moe", read_qwen_moe},
                                {"qwen3_moe", read_qwen_moe},
                                {"gpt_oss", read_gpt_oss},
                                {"llama4_text", read_llama4},
                                {"minimax_m2", read_minimax_m2},
                                {"mimo_v2_flash", read_mimo_v2},
                                {"step3p5", read_step3},
                                {"step3p7", read_step3},
                                {"deepseek_v2", read_deepseek},
                                {"deepseek_v3", read_deepseek},
                                {"deepseek_v32", read_deepseek},
                                {"kimi_k2", read_deepseek},
                                {"glm_moe_dsa", read_deepseek},
                                {"deepseek_v4", read_deepseek_v4},
                                {"nemotron_h", read_nemotron_h},
                                {"qwen3_next", read_qwen_next},
                                {"qwen3_5_text", read_qwen_next},
                                {"qwen3_5_moe_text", read_qwen_next}};

std::string model_name(const std::string& source) {
  std::string name = source.substr(source.find_last_of('/') + 1);
  for (const std::string suffix : {".json", "_config"})
    if (name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
      name.resize(name.size() - suffix.size());
  return name;
}

}  // namespace

void read_family(ConfigReader& r, ModelConfig& model) {
  std::vector<std::string> known;
  for (const Family& family : kFamilies) {
    if (model.model_type == family.model_type) return family.read(r, model);
    known.push_back(family.model_type);
  }
  r.fail("model_type", r.shown("model_type"),
         "a family this program knows: " + one_of(model.model_type, known));
}

namespace {

ModelConfig read_model_config(const std::string& text, const std::string& source) {
  const nlohmann::json root = parse_config_json(text, source);
  ConfigReader reader(root, source);
  ModelConfig model;
  model.name = model_name(source);
  model.source = source;
  if (!reader.has("text_config")) {
    model.model_type = reader.text("model_type");
    read_family(reader, model);
    reader.finish();
    return model;
  }
  // A multi-modal wrapper: the text decoder is the model; the towers before it are left out.
  reader.ignore({"model_type",
                 "vision_config",
                 "audio_config",
                 "image_token_id",
                 "video_token_id",
                 "vision_start_token_id",
                 "vision_end_token_id",
                 "audio_token_id",
                 "boa_token_id",
                 "boi_token_id",
                 "eoa_token_id",
                 "eoa_token_index",
                 "eoi_token_id",
                 "boi_token_index",
                 "eoi_token_index",
                 "image_token_index",
                 "vision_soft_tokens_per_image",
                 "media_placeholder_token_id",
                 "ignore_index",
                 "use_unified_vision_chunk",
                 "video_placeholder",
                 "torch_dtype",
                 "dtype"});
  ConfigReader inner = reader.child("text_config");
  model.model_type = inner.text("model_type");
  // Where the decoder doesn't say, the wrapper's word on tying counts.
  const bool inner_says = inner.has("tie_word_embeddings");
  const bool tied = reader.flag("tie_word_embeddings", false);
  read_family(inner, model);
  if (!inner_says && reader.has("tie_word_embeddings")) model.tied_embeddings = tied;
  inner.finish();
  read_quantization(reader, model);
  model.left_out = "vision and audio towers";
  reader.finish();
  return model;
}

}  // namespace

ModelConfig parse_model_config(const std::string& text, const std::string& source) {
  ModelConfig model = read_model_config(text, source);
  check_model_size(model);
  return model;
}

ModelConfig load_model_config(const std::string& path) {
  return parse_model_config(read_file(path, "a HuggingFace config.json"), source_name(path));
}

}  // namespace hyperoffload

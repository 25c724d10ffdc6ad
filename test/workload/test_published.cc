// Parameters, KV bytes and FLOPs of published models against what their publishers say.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <set>

#include "sim/model/read_file.h"
#include "sim/workload/model_figures.h"
#include "sim/workload/weights.h"
#include "test/support/paths.h"
#include "test/workload/published.h"
#include "test/workload/support.h"

namespace hyperoffload {
namespace {

std::string name_of(const PublishedModel& p) {
  std::string name = p.file;
  for (const std::string tail : {"_config.json", ".json"})
    if (name.size() > tail.size() && name.substr(name.size() - tail.size()) == tail)
      name.resize(name.size() - tail.size());
  return name.substr(name.find("--") + 2);  // without the collection it lies in
}

}  // namespace

TEST_CASE("every published config has its publisher's number of parameters") {
  for (const PublishedModel& p : published_models()) {
    const auto path = published_config(p.file);
    if (!path) return;
    const ModelFigures f = model_figures(load_model_config(*path), DataType::kBf16);
    INFO(p.file << ": " << p.source);
    CHECK(std::abs(static_cast<double>(f.parameters) - p.parameters) <= p.unit);
  }
}

TEST_CASE("every published mixture of experts has its publisher's active parameters") {
  for (const PublishedModel& p : published_models()) {
    const auto path = published_config(p.file);
    if (!path) return;
    const ModelConfig model = load_model_config(*path);
    const ModelFigures f = model_figures(model, DataType::kBf16);
    INFO(p.file << ": " << p.source);
    if (p.active == 0) {
      CHECK(f.active_parameters == f.parameters);
      continue;
    }
    const std::int64_t table = model.vocab * model.hidden;
    const int tables = p.counted == Counted::kAll ? 0 : p.counted == Counted::kWithoutEmbedding ? 1 : 2;
    CHECK(std::abs(static_cast<double>(f.active_parameters - tables * table) / 1e9 - p.active) <=
          p.active_unit);
  }
}

TEST_CASE("every published config has the KV bytes its architecture implies") {
  for (const PublishedModel& p : published_models()) {
    const auto path = published_config(p.file);
    if (!path) return;
    INFO(p.file << ": " << p.kv_why);
    CHECK(model_figures(load_model_config(*path), DataType::kBf16).kv_bytes_per_token.value == p.kv_bytes);
  }
}

TEST_CASE("a cache of a million tokens is as large as published for DeepSeek-V4-Pro, against V3.2") {
  // 9.62 GiB a sequence of 1M tokens in bf16, 8.7 times less than DeepSeek-V3.2 (https://blog.vllm.ai,
  // DeepSeek-V4).
  const auto pro = published_config("deepseek-ai--DeepSeek-V4-Pro_config.json");
  const auto v32 = published_config("deepseek-ai--DeepSeek-V3.2_config.json");
  if (!pro || !v32) return;
  const auto gib = [](const std::string& path) {
    return static_cast<double>(
               model_figures(load_model_config(path), DataType::kBf16).kv_bytes_per_token_far.value) *
           1048576 / (1 << 30);
  };
  CHECK(std::abs(gib(*pro) - 9.62) <= 0.005);
  CHECK(std::abs(gib(*v32) / gib(*pro) - 8.7) <= 0.05);
}

TEST_CASE("every config in the shared data is read, or refused by the name of a key") {
  const auto one = published_config("Qwen--Qwen3-8B_config.json");
  if (!one) return;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(*one).parent_path())) {
    INFO(file.path());
    const std::string message = input_error([&] { load_model_config(file.path().string()); });
    // One file there is a table of machines.
    CHECK((message == "no InputError" || contains(message, "hardware_config.json: model_type")));
  }
}

TEST_CASE("training FLOPs a token match the published table") {
  // arXiv 2505.09343, table 2: 250 (DeepSeek-V3), 2448 (Llama-405B) GFLOPs a token at 4096 tokens.
  const auto deepseek = published_config("deepseek-ai--DeepSeek-V3_config.json");
  if (!deepseek) return;
  CHECK(3 * forward_flops_per_token(load_model_config(*deepseek), 4096) / 1e9 == Approx(250).epsilon(0.005));
  const auto llama = published_config("meta-llama--Meta-Llama-3.1-405B_config.json");
  CHECK(3 * forward_flops_per_token(load_model_config(*llama), 4096) / 1e9 == Approx(2448).epsilon(0.015));
}

TEST_CASE("stored weight bytes match the published files") {
  const auto bytes = [](const char* file) {
    const auto path = published_config(file);
    return path ? static_cast<double>(published_weight_bytes(load_model_config(*path)).value) : 0.0;
  };
  if (bytes("moonshotai--Kimi-K2-Instruct_config.json") == 0) return;
  // Tensor bytes in the files of Kimi-K2-Instruct (FP8, blocks of 128 x 128): 1,029,173,256,720, with its
  // correction biases in fp32 and some buffers.
  CHECK(bytes("moonshotai--Kimi-K2-Instruct_config.json") == Approx(1029173256720.0).epsilon(1e-6));
  // Kimi-K2-Thinking, whose INT4 format (groups of 32) Kimi-K2.5's config has: 594,205,920,512, with two
  // whole numbers a matrix for its shape.
  CHECK(bytes("moonshotai--Kimi-K2.5_config.json") == Approx(594205920512.0).epsilon(2e-6));
  // Qwen3.5-397B-A17B, text decoder: 792,692,717,952, some small tensors in fp32.
  CHECK(bytes("Qwen--Qwen3.5-397B-A17B_config.json") == Approx(792692717952.0).epsilon(1e-6));
  // gpt-oss (MXFP4): `total_size` of model.safetensors.index.json at
  // https://huggingface.co/openai/gpt-oss-120b, -20b.
  CHECK(bytes("openai--gpt-oss-120b_config.json") == 65248815744.0);
  CHECK(bytes("openai--gpt-oss-20b_config.json") == 13761264768.0);
}

TEST_CASE("families without a config in the shared data have their published parameters, too") {
  struct Known {
    const char* config;
    std::int64_t parameters;  // `safetensors.total` of the model named
  };
  const Known known[] = {
      // facebook/opt-125m
      {R"({"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "ffn_dim": 3072,
           "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "do_layer_norm_before": true,
           "activation_function": "relu"})",
       125239296},
      // microsoft/phi-2
      {R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 32, "vocab_size": 51200, "max_position_embeddings": 2048, "hidden_act": "gelu_new",
           "partial_rotary_factor": 0.4, "qk_layernorm": false, "tie_word_embeddings": false})",
       2779683840},
      // microsoft/Phi-3-mini-4k-instruct
      {R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 32, "vocab_size": 32064, "max_position_embeddings": 4096, "hidden_act": "silu",
           "sliding_window": 2047, "tie_word_embeddings": false})",
       3821079552},
      // google/gemma-2b
      {R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18, "num_attention_heads": 8,
           "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000, "max_position_embeddings": 8192, "hidden_act": "gelu"})",
       2506172416},
      // google/gemma-2-2b
      {R"({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
           "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096,
           "hidden_activation": "gelu_pytorch_tanh"})",
       2614341888},
      // google/gemma-3-1b-it
      {R"({"model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
           "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144,
           "max_position_embeddings": 32768, "sliding_window": 512, "hidden_activation": "gelu_pytorch_tanh"})",
       999885952},
      // Qwen/Qwen1.5-MoE-A2.7B
      {R"({"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
           "num_key_value_heads": 16, "intermediate_size": 5632, "moe_intermediate_size": 1408, "num_experts": 60,
           "num_experts_per_tok": 4, "shared_expert_intermediate_size": 5632, "vocab_size": 151936,
           "max_position_embeddings": 8192, "hidden_act": "silu", "tie_word_embeddings": false})",
       14315784192},
  };
  for (const Known& k : known) {
    INFO(k.config);
    CHECK(model_figures(parse_model_config(k.config, "config.json"), DataType::kBf16).parameters ==
          k.parameters);
  }
}

TEST_CASE("a trace with published weights holds the published bytes") {
  const auto path = published_config("openai--gpt-oss-20b_config.json");
  if (!path) return;
  WorkloadSpec spec;
  spec.phase = Phase::kDecode;
  spec.sequence = 100;
  spec.published_weights = true;
  const Graph g = generate_trace(spec, load_model_config(*path));
  CHECK(bytes_of_kind(g, TensorKind::kWeight).value == 13761264768);
}

TEST_CASE("prediction modules have their published parameters and are not the main model's") {
  const auto module = [](const char* file) {
    const auto path = published_config(file);
    std::int64_t sum = 0;
    if (path)
      for (const WeightSpec& w : mtp_weights(load_model_config(*path))) sum += elements(w);
    return sum;
  };
  if (module("deepseek-ai--DeepSeek-V3_config.json") == 0) return;
  // 684,489,845,504 parameters in the files of DeepSeek-R1 without its scales: the main model, the module,
  // and the module's copies of embedding and head.
  CHECK(module("deepseek-ai--DeepSeek-V3_config.json") == 684489845504 - 671026419200 - 2 * 129280 * 7168);
  // 403,397,928,944 parameters in the files of Qwen3.5-397B-A17B, of which vision has 456,010,480, and the
  // text decoder what is checked above.
  CHECK(module("Qwen--Qwen3.5-397B-A17B_config.json") == 403397928944 - 456010480 - 396346350336);
  // 7,833,409,536 in the files of MiMo-7B-Base.
  CHECK(module("XiaomiMiMo--MiMo-7B-Base_config.json") == 7833409536 - 7622619136);
}

TEST_CASE("the elements of DeepSeek-V3's files are those published, by type") {
  // https://huggingface.co/api/models/deepseek-ai/DeepSeek-V3, safetensors.parameters: BF16 3,918,786,560,
  // F8_E4M3 680,571,043,840, F32 41,555,600 (scales, and 59 x 256 correction biases), prediction module
  // included.
  const auto path = published_config("deepseek-ai--DeepSeek-V3_config.json");
  if (!path) return;
  const ModelConfig model = load_model_config(*path);
  std::int64_t bf16 = 0, fp8 = 0, fp32 = 0;
  const auto add = [&](const std::vector<WeightSpec>& weights, int copies) {
    for (const WeightSpec& w : weights) {
      const std::int64_t bytes = weight_bytes(w, DataType::kBf16, DataType::kBf16, &*model.quant).value;
      const bool kept = w.kernel == "embed" || w.kernel == "lm_head";
      std::int64_t quantised = 0;
      for (const WeightPart& part : w.parts)
        if (part.quantised && !kept) quantised += part.rows * part.cols;
      const std::int64_t rest = elements(w) - quantised;
      (w.name == "router_correction" ? fp32 : bf16) += copies * rest;
      fp8 += copies * quantised;
      fp32 += copies * (bytes - quantised - 2 * rest) / 4;
    }
  };
  add(embedding_weights(model), 2);
  for (const LayerSpec& layer : model.layers) add(layer_weights(model, layer), 1);
  add(mtp_weights(model), 1);
  add({head_weights(model).front()}, 1);
  add({head_weights(model).back()}, 2);
  CHECK(bf16 == 3918786560);
  CHECK(fp8 == 680571043840);
  CHECK(fp32 == 41555600);
}

TEST_CASE("a quantised matrix has one scale a block, rounded up at the edges") {
  const auto path = published_config("deepseek-ai--DeepSeek-V3_config.json");
  if (!path) return;
  const ModelConfig model = load_model_config(*path);
  for (const WeightSpec& w : layer_weights(model, model.layers[10])) {
    const std::int64_t bytes = weight_bytes(w, DataType::kBf16, DataType::kBf16, &*model.quant).value;
    if (w.name == "kv_a_proj") CHECK(bytes == 576 * 7168 + 5 * 56 * 4);  // 576 rows: four blocks and a half
    if (w.name == "router") CHECK(bytes == 2 * 256 * 7168);              // stays as it is
    if (w.name == "expert.0") CHECK(bytes == 3 * 7168 * 2048 + 3 * 56 * 16 * 4);
  }
}

TEST_CASE("docs/models.md is the table of these figures") {
  std::string text =
      "# Models\n\n"
      "What this program derives from the published configs, beside what the publishers say. Written and "
      "checked by\n"
      "`test/workload/test_published.cc` (with `HYPEROFFLOAD_WRITE_DOCS=1` it writes this file). Parameters "
      "are those of\n"
      "the text decoder, router correction biases included, prediction heads and scales excluded. KV: bytes "
      "a token adds to\n"
      "the caches of all layers in bf16. FLOPs: forward, a token of a causal sequence of 4,096, logits "
      "included.\n\n"
      "| config | parameters | published | active | published, billions | KV bytes a token | why | GFLOPs a "
      "token | source |\n"
      "|---|---:|---:|---:|---:|---:|---|---:|---|\n";
  std::set<std::string> shown;
  for (const PublishedModel& p : published_models()) {
    const auto path = published_config(p.file);
    if (!path) return;
    if (!shown.insert(std::string(p.source).substr(0, std::string(p.source).find_first_of(" ,:;", 8))).second)
      continue;
    const ModelConfig model = load_model_config(*path);
    const ModelFigures f = model_figures(model, DataType::kBf16);
    const std::int64_t sequence = 4096;
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {:.2f} | {} |\n", name_of(p), f.parameters,
        p.unit == 0 ? fmt::format("{:.0f}", p.parameters) : fmt::format("{:g}", p.parameters),
        f.active_parameters,
        p.active > 0 ? fmt::format("{:g}{}", p.active,
                                   p.counted == Counted::kAll                ? ""
                                   : p.counted == Counted::kWithoutEmbedding ? " without embedding"
                                                                             : " without embedding and head")
                     : "all",
        f.kv_bytes_per_token.value, p.kv_why, forward_flops_per_token(model, sequence) / 1e9, p.source);
  }
  const std::string file = source_dir() + "/docs/models.md";
  if (std::getenv("HYPEROFFLOAD_WRITE_DOCS")) std::ofstream(file) << text;
  CHECK(read_file(file, "the table of models") == text);
}

}  // namespace hyperoffload

// Parameters, KV bytes and FLOPs of published models against what their publishers say.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <set>

#include "sim/model/read_file.h"
#include "sim/workload/model_figures.h"
#include "sim/workload/weights.h"
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
  const std::string file = std::string(SOURCE_DIR) + "/docs/models.md";
  if (std::getenv("HYPEROFFLOAD_WRITE_DOCS")) std::ofstream(file) << text;
  CHECK(read_file(file, "the table of models") == text);
}

}  // namespace hyperoffload

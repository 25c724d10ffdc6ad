// Published figures of the models whose configs lie in the shared data, each with its source.
//
// Totals. Exact: the number of parameters HuggingFace's API gives for the model's safetensors files
// (https://huggingface.co/api/models/NAME, `safetensors.total`), or an audit of the files' headers; where
// those hold more than the text decoder the difference is said. Rounded: the model card or paper, to the
// digits it has. `active` in billions as published, some with, some without the input embedding or the
// output head.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperoffload {

enum class Counted { kAll, kWithoutEmbedding, kWithoutEmbeddingAndHead };

struct PublishedModel {
  const char* file;
  double parameters;  // exact when `unit` is 0, else as printed: `unit` is its last digit's worth
  double unit;
  double active;       // 0: dense
  double active_unit;  // its last digit's worth
  Counted counted;
  std::int64_t kv_bytes;  // a token, bf16: from the architecture, written out in `kv_why`
  const char* kv_why;
  const char* source;
};

inline const std::vector<PublishedModel>& published_models() {
  static const std::vector<PublishedModel> models = {
      {"meta-llama--Meta-Llama-3.1-8B_config.json", 8030261248, 0, 0, 0, Counted::kAll, 131072,
       "32 layers x 2 x 8 heads x 128 x 2 B", "https://huggingface.co/meta-llama/Llama-3.1-8B"},
      {"is--llama-3.1-8b-instruct_config.json", 8030261248, 0, 0, 0, Counted::kAll, 131072,
       "32 x 2 x 8 x 128 x 2 B", "https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct"},
      {"llmss--Llama-3.1-8B.json", 8030261248, 0, 0, 0, Counted::kAll, 131072, "32 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/meta-llama/Llama-3.1-8B"},
      {"meta-llama--Meta-Llama-3.1-70B_config.json", 70553706496, 0, 0, 0, Counted::kAll, 327680,
       "80 x 2 x 8 x 128 x 2 B", "https://huggingface.co/meta-llama/Llama-3.1-70B"},
      {"is--llama-3.1-70b-instruct_config.json", 70553706496, 0, 0, 0, Counted::kAll, 327680,
       "80 x 2 x 8 x 128 x 2 B", "https://huggingface.co/meta-llama/Llama-3.1-70B-Instruct"},
      {"meta-llama--Meta-Llama-3.1-405B_config.json", 405853388800, 0, 0, 0, Counted::kAll, 516096,
       "126 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/meta-llama/Llama-3.1-405B; KV: arXiv 2505.09343, table 1"},
      {"is--llama-2-7b-hf_config.json", 6738415616, 0, 0, 0, Counted::kAll, 524288, "32 x 2 x 32 x 128 x 2 B",
       "https://huggingface.co/meta-llama/Llama-2-7b-hf (6,738,417,664 with 2,048 stored rotary "
       "frequencies)"},
      {"is--codellama-34b-instruct-hf_config.json", 33743970304, 0, 0, 0, Counted::kAll, 196608,
       "48 x 2 x 8 x 128 x 2 B", "https://huggingface.co/codellama/CodeLlama-34b-Instruct-hf"},
      {"is--yi-34b_config.json", 34388917248, 0, 0, 0, Counted::kAll, 245760, "60 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/01-ai/Yi-34B"},
      {"is--mistral-nemo-instruct-2407_config.json", 12247782400, 0, 0, 0, Counted::kAll, 163840,
       "40 x 2 x 8 x 128 x 2 B", "https://huggingface.co/mistralai/Mistral-Nemo-Instruct-2407"},
      {"is--qwen2.5-7b-instruct_config.json", 7615616512, 0, 0, 0, Counted::kAll, 57344,
       "28 x 2 x 4 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen2.5-7B-Instruct"},
      {"Qwen--Qwen3-0.6B_config.json", 751632384.0 - 151936 * 1024, 0, 0, 0, Counted::kAll, 114688,
       "28 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/Qwen/Qwen3-0.6B: 751,632,384 less the tied head, which the files hold a "
       "second time"},
      {"Qwen--Qwen3-8B_config.json", 8190735360, 0, 0, 0, Counted::kAll, 147456, "36 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/Qwen/Qwen3-8B"},
      {"simai--qwen3-8B_config.json", 8190735360, 0, 0, 0, Counted::kAll, 147456, "36 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/Qwen/Qwen3-8B"},
      {"is--qwen3-14b_config.json", 14768307200, 0, 0, 0, Counted::kAll, 163840, "40 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/Qwen/Qwen3-14B"},
      {"Qwen--Qwen3-32B_config.json", 32762123264, 0, 0, 0, Counted::kAll, 262144, "64 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/Qwen/Qwen3-32B"},
      {"Qwen--Qwen3-VL-8B-Instruct_config.json", 8190735360, 0, 0, 0, Counted::kAll, 147456,
       "36 x 2 x 8 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen3-8B: its text decoder is that model's"},
      {"XiaomiMiMo--MiMo-7B-Base_config.json", 7833409536.0 - 210790400, 0, 0, 0, Counted::kAll, 147456,
       "36 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/XiaomiMiMo/MiMo-7B-Base: 7,833,409,536 less its prediction layer (a layer, 2 "
       "x 4096 x 4096, three norms)"},
      {"mistralai--Mixtral-8x7B-v0.1_config.json", 46702792704, 0, 12.9, 0.1, Counted::kAll, 131072,
       "32 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/mistralai/Mixtral-8x7B-v0.1; active: "
       "https://mistral.ai/news/mixtral-of-experts (12.9B)"},
      {"is--mixtral-8x7b-v0.1_config.json", 46702792704, 0, 12.9, 0.1, Counted::kAll, 131072,
       "32 x 2 x 8 x 128 x 2 B", "https://huggingface.co/mistralai/Mixtral-8x7B-v0.1"},
      {"mistralai--Mixtral-8x22B-v0.1_config.json", 140620634112, 0, 39, 1, Counted::kAll, 229376,
       "56 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/mistral-community/Mixtral-8x22B-v0.1; active: "
       "https://mistral.ai/news/mixtral-8x22b (39B)"},
      {"llmss--Phi-mini-MoE-instruct.json", 7647632704, 0, 2.4, 0.1, Counted::kAll, 131072,
       "32 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/microsoft/Phi-mini-MoE-instruct (7.6B, 2.4B active)"},
      {"Qwen--Qwen3-30B-A3B_config.json", 30532122624, 0, 3.3, 0.1, Counted::kAll, 98304,
       "48 x 2 x 4 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen3-30B-A3B (30.5B, 3.3B active)"},
      {"is--qwen3-30b-a3b_config.json", 30532122624, 0, 3.3, 0.1, Counted::kAll, 98304,
       "48 x 2 x 4 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen3-30B-A3B"},
      {"Qwen--Qwen3-235B-A22B_config.json", 235093634560, 0, 22, 1, Counted::kAll, 192512,
       "94 x 2 x 4 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen3-235B-A22B"},
      {"Qwen--Qwen3-235B-A22B-FP8_config.json", 235093634560, 0, 22, 1, Counted::kAll, 192512,
       "94 x 2 x 4 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen3-235B-A22B-FP8"},
      {"simai--qwen3-235B-A22B_FP8_config.json", 235093634560, 0, 22, 1, Counted::kAll, 192512,
       "94 x 2 x 4 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen3-235B-A22B-FP8"},
      {"Qwen--Qwen3-Coder-480B-A35B-Instruct_config.json", 480154875392, 0, 35, 1, Counted::kAll, 253952,
       "62 x 2 x 8 x 128 x 2 B", "https://huggingface.co/Qwen/Qwen3-Coder-480B-A35B-Instruct"},
      {"openai--gpt-oss-20b_config.json", 20914757184, 0, 3.61, 0.01, Counted::kWithoutEmbedding, 49152,
       "24 x 2 x 8 x 64 x 2 B", "arXiv 2508.10925, table 1: 20.91B, 3.61B active with the unembedding only"},
      {"openai--gpt-oss-120b_config.json", 116829156672, 0, 5.13, 0.01, Counted::kWithoutEmbedding, 73728,
       "36 x 2 x 8 x 64 x 2 B", "arXiv 2508.10925, table 1: 116.83B, 5.13B active"},
      {"meta-llama--Llama-4-Scout-17B-16E-Instruct_config.json", 108641793536.0 - 871932416, 0, 17, 1,
       Counted::kAll, 196608, "48 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct: 108,641,793,536 less 871,932,416 "
       "of vision and projector"},
      {"is--llama-4-scout-17b-16e-instruct-fp8-dynamic_config.json", 108641793536.0 - 871932416, 0, 17, 1,
       Counted::kAll, 196608, "48 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct"},
      {"meta-llama--Llama-4-Maverick-17B-128E-Instruct_config.json", 401583781376.0 - 871932416, 0, 17, 1,
       Counted::kAll, 196608, "48 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/meta-llama/Llama-4-Maverick-17B-128E-Instruct: 401,583,781,376 less "
       "871,932,416"},
      {"MiniMaxAI--MiniMax-M2.5_config.json", 228689764864, 0, 10, 1, Counted::kWithoutEmbeddingAndHead,
       253952, "62 x 2 x 8 x 128 x 2 B", "https://huggingface.co/MiniMaxAI/MiniMax-M2 (230B, 10B active)"},
      {"XiaomiMiMo--MiMo-V2-Flash_config.json", 309e9, 1e9, 15, 1, Counted::kAll, 222720,
       "(9 x 4 + 39 x 8) heads x (192 + 128) x 2 B",
       "https://huggingface.co/XiaomiMiMo/MiMo-V2-Flash (309B, 15B active)"},
      {"stepfun-ai--Step-3.7-Flash_config.json", 196e9, 1e9, 11, 1, Counted::kAll, 184320,
       "45 x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/stepfun-ai/Step-3.5-Flash (196B, 11B active), whose successor it is"},
      {"google--gemma-4-26B-A4B_config.json", 25.2e9, 0.1e9, 3.8, 0.1, Counted::kAll, 225280,
       "(25 x 8 x 256 + 5 x 2 x 512) x 2 x 2 B",
       "https://huggingface.co/google/gemma-4-26B-A4B (25.2B, 3.8B active)"},
      {"deepseek-ai--DeepSeek-V3_config.json", 671026419200, 0, 36.6, 0.1, Counted::kWithoutEmbedding, 70272,
       "61 x (512 + 64) x 2 B",
       "https://github.com/deepseek-ai/DeepSeek-V3/blob/main/README_WEIGHTS.md (671B, 36.6B active); KV: "
       "arXiv 2505.09343, table 1"},
      {"deepseek-ai--DeepSeek-R1_config.json", 671026419200, 0, 36.6, 0.1, Counted::kWithoutEmbedding, 70272,
       "61 x 576 x 2 B", "https://huggingface.co/deepseek-ai/DeepSeek-R1 (671B, 37B active)"},
      {"simai--deepseek_v3_config.json", 671026419200, 0, 36.6, 0.1, Counted::kWithoutEmbedding, 70272,
       "61 x 576 x 2 B", "https://huggingface.co/deepseek-ai/DeepSeek-V3"},
      {"simai--deepseek_R1_0528_config.json", 671026419200, 0, 36.6, 0.1, Counted::kWithoutEmbedding, 70272,
       "61 x 576 x 2 B", "https://huggingface.co/deepseek-ai/DeepSeek-R1-0528"},
      {"is--deepseek-v2-lite_config.json", 15706484224, 0, 2.4, 0.1, Counted::kWithoutEmbedding, 31104,
       "27 x 576 x 2 B", "https://huggingface.co/deepseek-ai/DeepSeek-V2-Lite (15.7B, 2.4B active)"},
      {"deepseek-ai--DeepSeek-V3.2_config.json", 671e9, 1e9, 37, 1, Counted::kWithoutEmbedding, 85888,
       "61 x (576 + 128) x 2 B",
       "https://github.com/deepseek-ai/DeepSeek-V3.2-Exp (V3.1 with an indexer a layer)"},
      {"moonshotai--Kimi-K2-Instruct_config.json", 1026408232448, 0, 32, 1, Counted::kWithoutEmbedding, 70272,
       "61 x 576 x 2 B", "https://huggingface.co/moonshotai/Kimi-K2-Instruct (1T, 32B active)"},
      {"moonshotai--Kimi-K2.5_config.json", 1026408232448, 0, 32, 1, Counted::kWithoutEmbedding, 70272,
       "61 x 576 x 2 B", "https://huggingface.co/moonshotai/Kimi-K2.5: its text decoder is K2's"},
      {"zai-org--GLM-5_config.json", 743911218432, 0, 40, 1, Counted::kWithoutEmbeddingAndHead, 109824,
       "78 x (576 + 128) x 2 B", "https://huggingface.co/zai-org/GLM-5 (744B, 40B active)"},
      {"zai-org--GLM-5.1_config.json", 743911218432, 0, 40, 1, Counted::kWithoutEmbeddingAndHead, 109824,
       "78 x 704 x 2 B", "https://huggingface.co/zai-org/GLM-5.1"},
      {"is--glm-5.2-fp8_config.json", 743911218432, 0, 40, 1, Counted::kWithoutEmbeddingAndHead, 109824,
       "78 x 704 x 2 B", "https://huggingface.co/zai-org/GLM-5"},
      {"deepseek-ai--DeepSeek-V4-Flash_config.json", 284e9, 1e9, 13, 1, Counted::kWithoutEmbedding, 50912,
       "43 x 512 x 2 + 21 x (512 + 128) / 4 x 2 + 20 x 512 / 128 x 2 B",
       "https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash (284B, 13B active)"},
      {"deepseek-ai--DeepSeek-V4-Pro_config.json", 1.6e12, 0.1e12, 49, 1, Counted::kWithoutEmbedding, 72312,
       "61 x 512 x 2 + 30 x (512 + 128) / 4 x 2 + 31 x 512 / 128 x 2 B",
       "https://huggingface.co/deepseek-ai/DeepSeek-V4-Pro (1.6T, 49B active)"},
      {"simai--qwen3-next-80B-A3B_config.json", 79674391296, 0, 3, 1, Counted::kWithoutEmbeddingAndHead,
       24576, "12 of 48 layers x 2 x 2 x 256 x 2 B",
       "https://huggingface.co/Qwen/Qwen3-Coder-Next, of the same geometry (3B active)"},
      {"Qwen--Qwen3.5-27B_config.json", 26895998464, 0, 0, 0, Counted::kAll, 65536,
       "16 of 64 layers x 2 x 4 x 256 x 2 B",
       "https://huggingface.co/Qwen/Qwen3.5-27B (27,781,427,952 with vision and prediction head)"},
      {"Qwen--Qwen3.5-397B-A17B_config.json", 396346350336, 0, 17, 1, Counted::kAll, 30720,
       "15 of 60 layers x 2 x 2 x 256 x 2 B",
       "https://huggingface.co/Qwen/Qwen3.5-397B-A17B (403,397,928,944 with vision and prediction head)"},
      {"nvidia--Llama-3_3-Nemotron-Super-49B-v1_config.json", 49867145216, 0, 0, 0, Counted::kAll, 200704,
       "49 of 80 layers x 2 x 8 x 128 x 2 B",
       "https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1"},
      {"nvidia--Nemotron-H-56B-Base-8K_config.json", 56e9, 1e9, 0, 0, Counted::kAll, 40960,
       "10 of 118 layers x 2 x 8 x 128 x 2 B", "https://huggingface.co/nvidia/Nemotron-H-56B-Base-8K"},
      {"nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16_config.json", 31577937344.0 + 23 * 128, 0, 3.6, 0.1,
       Counted::kAll, 6144, "6 of 52 layers x 2 x 2 x 128 x 2 B",
       "https://huggingface.co/nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16: 31,577,937,344, and the "
       "correction biases of 23 routers; active: technical report (3.2B, 3.6B with embeddings)"},
  };
  return models;
}

}  // namespace hyperoffload

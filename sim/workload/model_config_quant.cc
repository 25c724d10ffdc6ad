// How published weights are stored: FP8 in blocks, MXFP4, compressed-tensors.
#include <fmt/format.h>

#include <map>
#include <set>

#include "sim/workload/model_families.h"

namespace hyperoffload {
namespace {

const std::vector<std::string> kAttentionKernels = {"qkv", "q_a",          "q_b",    "kv_a",   "kv_b",
                                                    "out", "indexer_proj", "ssm_in", "ssm_out"};
const std::vector<std::string> kMlpKernels = {"gate_up", "down"};
const std::vector<std::string> kSharedKernels = {"shared_gate_up", "shared_down"};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Which kernels a module name or pattern of an exclusion list stands for; empty: none of the decoder's.
std::vector<std::string> kernels_of(ConfigReader& r, const std::string& key, const std::string& pattern) {
  for (const char* outside : {"vision", "multi_modal", "visual", "audio", "norm", "mtp"})
    if (contains(pattern, outside)) return {};
  if (contains(pattern, "lm_head")) return {"lm_head"};
  if (contains(pattern, "embed")) return {"embed"};
  if (contains(pattern, "self_attn")) return kAttentionKernels;
  if (contains(pattern, "shared_expert")) return kSharedKernels;
  if (contains(pattern, "router") || contains(pattern, "mlp.gate") || contains(pattern, "correction_bias") ||
      pattern == "gate")
    if (!contains(pattern, "proj")) return {"router"};
  if (contains(pattern, "mlp") && contains(pattern, "proj")) return kMlpKernels;
  r.fail(key, "\"" + pattern + "\"",
         "modules this program can place: attention, router, experts, mlp, embed, lm_head");
}

// A list of modules that stay as they are. Numbered layers must all be there: a part of them is not modelled.
void read_exclusions(ConfigReader& r, const std::string& key, const ModelConfig&, QuantSpec& quant) {
  if (!r.has(key)) return;
  std::map<std::string, std::set<std::int64_t>> layers_of;
  std::set<std::string> kernels;
  for (const std::string& pattern : r.texts(key)) {
    for (const std::string& kernel : kernels_of(r, key, pattern)) kernels.insert(kernel);
    const std::size_t at = pattern.find("layers.");
    if (at == std::string::npos || at + 7 >= pattern.size() ||
        !std::isdigit(static_cast<unsigned char>(pattern[at + 7])))
      continue;
    std::size_t end = at + 7;
    while (end < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[end]))) ++end;
    layers_of[pattern.substr(0, at) + pattern.substr(end)].insert(
        std::stoll(pattern.substr(at + 7, end - at - 7)));
  }
  for (const auto& [module, layers] : layers_of)
    if (*layers.rbegin() + 1 != static_cast<std::int64_t>(layers.size()))
      r.fail(key, fmt::format("\"{}\" in {} layers up to {}", module, layers.size(), *layers.rbegin()),
             "all layers or none");
  quant.not_quantised.assign(kernels.begin(), kernels.end());
}

void read_compressed_tensors(ConfigReader& q, QuantSpec& quant) {
  q.ignore({"format", "global_compression_ratio", "quantization_status"});
  q.only("kv_cache_scheme", {});
  ConfigReader groups = q.child("config_groups");
  ConfigReader group = groups.child("group_0");
  groups.finish();
  group.ignore({"input_activations", "output_activations", "targets"});
  ConfigReader weights = group.child("weights");
  weights.ignore({"actorder", "block_structure", "dynamic", "observer", "observer_kwargs"});
  group.finish();
  const std::int64_t bits = weights.count("num_bits");
  const std::string type = weights.text("type");
  if (bits == 8)
    quant.type = type == "float" ? DataType::kFp8 : DataType::kInt8;
  else if (bits == 4)
    quant.type = type == "float" ? DataType::kFp4 : DataType::kInt4;
  else
    weights.fail("num_bits", std::to_string(bits), "4 or 8");
  weights.only("symmetric", {"true"});
  const std::string strategy = weights.text("strategy");
  quant.scale_bits = 16;
  quant.block_rows = 1;
  if (strategy == "group")
    quant.block_cols = weights.count("group_size");
  else if (strategy == "channel")
    weights.ignore({"group_size"});
  else
    weights.fail("strategy", weights.shown("strategy"), "group or channel");
  weights.finish();
}

}  // namespace

void read_quantization(ConfigReader& r, ModelConfig& model) {
  if (!r.has("quantization_config")) return;
  ConfigReader q = r.child("quantization_config");
  QuantSpec quant;
  quant.method = q.text("quant_method");
  std::string exclusions = "modules_to_not_convert";
  if (quant.method == "fp8") {
    q.ignore({"activation_scheme"});
    const std::string format = q.text("fmt", "e4m3");
    if (format != "e4m3" && format != "float8_e4m3fn") q.fail("fmt", q.shown("fmt"), "e4m3");
    const std::vector<std::int64_t> block = q.counts("weight_block_size");
    if (block.size() != 2 || block[0] < 1 || block[1] < 1)
      q.fail("weight_block_size", q.shown("weight_block_size"), "two whole numbers above 0");
    quant.block_rows = block[0];
    quant.block_cols = block[1];
    quant.scale_bits = 32;
    q.ignore({"scale_fmt"});
  } else if (quant.method == "mxfp4") {
    quant.type = DataType::kFp4;
    quant.block_rows = 1;
    quant.block_cols = 32;
    quant.scale_bits = 8;
  } else if (quant.method == "compressed-tensors") {
    read_compressed_tensors(q, quant);
    exclusions = "ignore";
  } else {
    q.fail("quant_method", q.shown("quant_method"), "fp8, mxfp4 or compressed-tensors");
  }
  read_exclusions(q, exclusions, model, quant);
  q.finish();
  for (const char* kernel : {"embed", "lm_head"}) quant.not_quantised.push_back(kernel);
  if (r.has("expert_dtype")) {  // DeepSeek-V4: routed experts in FP4 with a scale for 32 elements of a row
    if (r.text("expert_dtype") != "fp4") r.fail("expert_dtype", r.shown("expert_dtype"), "fp4");
    quant.expert_type = DataType::kFp4;
    quant.expert_block_rows = 1;
    quant.expert_block_cols = 32;
    quant.scale_bits = 8;
  }
  model.quant = quant;
}

}  // namespace hyperoffload

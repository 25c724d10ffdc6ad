#include "sim/workload/check_workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;  // in one pass; keeps every product within int64

void require(bool good, const WorkloadSpec& spec, const std::string& key, const std::string& found,
             const std::string& expected) {
  if (!good) throw InputError(spec.at(key), found, expected);
}

void check_lengths(const WorkloadSpec& spec, const ModelConfig& model) {
  const auto positive = [&](std::int64_t value, const char* key) {
    require(value >= 1, spec, key, std::to_string(value), "a whole number, 1 or more");
  };
  positive(spec.batch, "batch");
  positive(spec.sequence, "sequence");
  positive(spec.steps, "steps");
  const bool decodes = spec.phase == Phase::kDecode || spec.phase == Phase::kMixed;
  const std::int64_t last = spec.sequence + (decodes ? spec.steps : 0);
  require(last <= model.max_positions, spec, "sequence", fmt::format("{} tokens in the end", last),
          fmt::format("at most {}: the model's max_position_embeddings", model.max_positions));
  require(spec.batch <= kMostTokens / spec.sequence, spec, "batch",
          fmt::format("{} samples of {} tokens", spec.batch, spec.sequence),
          fmt::format("at most {} tokens", kMostTokens));
  require(decodes || spec.steps == 1, spec, "steps", std::to_string(spec.steps),
          "no steps: they belong to phase decode or mixed");
  require(spec.phase == Phase::kPrefill || spec.chunk == 0, spec, "chunk", std::to_string(spec.chunk),
          "no chunk: it belongs to phase prefill");
  require((spec.phase == Phase::kMixed) == spec.prefill.has_value(), spec, "prefill",
          spec.prefill ? "a prompt" : "nothing", "a prompt in phase mixed, and only there");
  if (spec.prefill) {
    positive(spec.prefill->batch, "prefill.batch");
    positive(spec.prefill->tokens, "prefill.tokens");
    const std::int64_t end = spec.prefill->cached + spec.steps * spec.prefill->tokens;
    require(end <= model.max_positions, spec, "prefill", fmt::format("{} tokens in the end", end),
            fmt::format("at most {}: the model's max_position_embeddings", model.max_positions));
  }
}

// A count that parallelism `key` splits into `parts` equal parts.
void check_division(const WorkloadSpec& spec, std::int64_t count, int parts, const std::string& key,
                    const std::string& what) {
  require(count % parts == 0, spec, "parallel." + key, std::to_string(parts),
          fmt::format("a divisor of the model's {} {}", count, what));
}

void check_layer(const WorkloadSpec& spec, const LayerSpec& layer, const RankPlace& p) {
  if (const auto* a = std::get_if<AttentionSpec>(&layer.mixer)) {
    check_division(spec, a->heads, p.tp, "tp", "attention heads");
    require(a->kv_heads % p.tp == 0 || p.tp % a->kv_heads == 0, spec, "parallel.tp", std::to_string(p.tp),
            fmt::format("a divisor or a multiple of the model's {} key/value heads", a->kv_heads));
  }
  if (const auto* a = std::get_if<MlaSpec>(&layer.mixer))
    check_division(spec, a->heads, p.tp, "tp", "attention heads");
  if (const auto* a = std::get_if<CompressedAttentionSpec>(&layer.mixer))
    check_division(spec, a->o_groups, p.tp, "tp", "output groups");
  if (const auto* m = std::get_if<MambaSpec>(&layer.mixer)) {
    check_division(spec, m->heads, p.tp, "tp", "state-space heads");
    require(m->groups % p.tp == 0 || p.tp % m->groups == 0, spec, "parallel.tp", std::to_string(p.tp),
            fmt::format("a divisor or a multiple of the model's {} state-space groups", m->groups));
  }
  if (const auto* d = std::get_if<DeltaNetSpec>(&layer.mixer))
    check_division(spec, d->key_heads, p.tp, "tp", "linear-attention heads");
  if (const auto* m = std::get_if<MlpSpec>(&layer.ffn))
    check_division(spec, m->intermediate, p.tp, "tp", "intermediate columns");
  if (const auto* m = std::get_if<MoeSpec>(&layer.ffn)) {
    check_division(spec, m->experts, p.ep, "ep", "experts");
    check_division(spec, m->intermediate, p.etp, "etp", "columns of an expert");
    if (m->shared_intermediate > 0)
      check_division(spec, m->shared_intermediate, p.tp, "tp", "columns of the shared expert");
    if (m->dense) check_division(spec, m->dense->intermediate, p.tp, "tp", "intermediate columns");
  }
}

void check_training(const WorkloadSpec& spec, const ModelConfig& model) {
  const TrainSpec& t = spec.train;
  require(spec.batch % t.microbatches == 0, spec, "train.microbatches", std::to_string(t.microbatches),
          fmt::format("a divisor of batch = {}: a micro-batch is a whole number of samples", spec.batch));
  require(t.zero >= 0 && t.zero <= 3, spec, "train.zero", std::to_string(t.zero), "0, 1, 2 or 3");
  require(!spec.published_weights, spec, "weight_dtype", "published", "a type to train in");
  require(!(t.zero == 3 && t.optimizer_on_host), spec, "train.zero", "3 with the optimizer on the host",
          "at most 2 there");
  for (const LayerSpec& layer : model.layers) {
    const auto* mla = std::get_if<MlaSpec>(&layer.mixer);
    const bool picks = (mla && mla->indexer) || std::holds_alternative<CompressedAttentionSpec>(layer.mixer);
    require(!picks, spec, "phase", "train",
            "prefill or decode: the loss of this model's sparse-attention indexer is not modelled");
  }
}

// Each rank has the same part of a sequence's beginning and of its end: 2 cp parts.
void check_context(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& p) {
  if (p.cp == 1) return;
  require(spec.sequence % (2 * p.cp) == 0, spec, "parallel.cp", std::to_string(p.cp),
          fmt::format("2 cp to divide sequence = {}", spec.sequence));
  for (const LayerSpec& layer : model.layers) {
    const auto* mla = std::get_if<MlaSpec>(&layer.mixer);
    const bool plain = std::holds_alternative<std::monostate>(layer.mixer) ||
                       std::holds_alternative<AttentionSpec>(layer.mixer) || (mla && !mla->indexer);
    require(plain, spec, "parallel.cp", std::to_string(p.cp),
            "1: context parallelism is modelled for attention over all tokens or a window");
  }
}

}  // namespace

void check_workload(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& p) {
  check_lengths(spec, model);
  for (const LayerSpec& layer : model.layers) check_layer(spec, layer, p);
  const std::int64_t stages = std::int64_t{p.pp} * spec.parallel.virtual_stages;
  require(stages <= static_cast<std::int64_t>(model.layers.size()), spec, "parallel.pp",
          fmt::format("{} stages", stages), fmt::format("at most one a layer: {}", model.layers.size()));
  require(p.tp <= model.vocab, spec, "parallel.tp", std::to_string(p.tp),
          fmt::format("at most the vocabulary, {}", model.vocab));
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const LayerSpec& l) { return std::holds_alternative<MoeSpec>(l.ffn); });
  require(experts || p.ep == 1, spec, "parallel.ep", std::to_string(p.ep), "1: the model has no experts");
  require(!spec.published_weights || model.quant || model.dtype, spec, "weight_dtype", "published",
          "a type: the config says neither quantization_config nor torch_dtype");
  require(spec.mtp >= 0 && spec.mtp <= model.mtp_layers, spec, "mtp", std::to_string(spec.mtp),
          fmt::format("at most the model's {} prediction modules", model.mtp_layers));
  require(spec.mtp == 0 || model.streams == 0, spec, "mtp", std::to_string(spec.mtp),
          "0: this model's prediction modules are not modelled");
  check_context(spec, model, p);
  if (spec.phase == Phase::kTrain) return check_training(spec, model);
  require(p.cp == 1 || (spec.phase == Phase::kPrefill && spec.chunk == 0), spec, "parallel.cp",
          std::to_string(p.cp), "1, unless training or prefilling a whole prompt");
  require(spec.parallel.virtual_stages == 1, spec, "parallel.virtual_stages",
          std::to_string(spec.parallel.virtual_stages), "1, unless training");
  require(spec.kv_block >= 0, spec, "kv_block", std::to_string(spec.kv_block), "0 or more tokens");
}

}  // namespace hyperoffload

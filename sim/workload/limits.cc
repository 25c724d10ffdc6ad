#include "sim/workload/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/model/error.h"
#include "sim/workload/generators.h"
#include "sim/workload/kv_cache.h"

namespace hyperoffload {
namespace {

constexpr double kMostWide = 0x1p28, kMostParameters = 0x1p50;
constexpr double kMostExperts = 65536;
constexpr double kMostOps = 5e6, kMostTensors = 5e6, kMostOperands = 5e7;

double real(std::int64_t n) { return static_cast<double>(n); }

// Rows or columns of the widest weight of a part.
double widest(const std::vector<WeightSpec>& weights) {
  double most = 0;
  for (const WeightSpec& w : weights)
    for (const WeightPart& part : w.parts) most = std::max({most, real(part.rows), real(part.cols)});
  return most;
}

double parameters(const ModelConfig& model, const std::vector<WeightSpec>& weights, const std::string& part) {
  double sum = 0;
  for (const WeightSpec& w : weights)
    for (const WeightPart& p : w.parts) {
      if (std::max(real(p.rows), real(p.cols)) > kMostWide)
        throw InputError(model.source + ": " + part + w.name,
                         fmt::format("a matrix of {} x {} from the sizes given", p.rows, p.cols),
                         fmt::format("at most {:.0f} rows and columns", kMostWide));
      sum += real(p.rows) * real(p.cols);
    }
  return sum;
}

std::int64_t experts_of(const LayerSpec& layer) {
  const auto* moe = std::get_if<MoeSpec>(&layer.ffn);
  return moe ? moe->experts : 0;
}

// Numbers of a pass, or of all.
struct Counts {
  double ops = 0, tensors = 0, operands = 0;
  void add(const Program& program, double times) {
    ops += times * real(static_cast<std::int64_t>(program.kernels.size()));
    tensors += times * real(static_cast<std::int64_t>(program.values.size()));
    for (const Kernel& k : program.kernels)
      operands += times * real(static_cast<std::int64_t>(k.reads.size() + k.writes.size() + k.weights.size() +
                                                         k.state_reads.size() + k.state_writes.size()));
  }
};

void require(const Counts& counts, const std::string& where, const std::string& found) {
  const auto refuse = [&](double count, double most, const char* what) {
    if (count > most)
      throw InputError(where, fmt::format("{}: a trace of about {:.0f} {}", found, count, what),
                       fmt::format("a trace of at most {:.0f} {}", most, what));
  };
  refuse(counts.ops, kMostOps, "ops");
  refuse(counts.tensors, kMostTensors, "tensors");
  refuse(counts.operands, kMostOperands, "operands of its ops");
}

// Cache tensors of a rank's layers, before any is made; each pass looks at all of them.
void check_blocks(const WorkloadSpec& spec, const ModelConfig& model, const Stage& stage, double passes) {
  if (spec.kv_block == 0) return;
  double blocks = 0;
  const double steps = real(spec.steps);
  double tokens = real(spec.sequence) + (spec.phase == Phase::kPrefill ? 0 : steps);
  if (spec.prefill) tokens += real(spec.prefill->cached) + steps * real(spec.prefill->tokens);
  for (std::int64_t i = stage.layers.from; i < stage.layers.to; ++i)
    if (grows_without_end(model.layers[static_cast<std::size_t>(i)])) blocks += tokens / real(spec.kv_block);
  const std::string found = fmt::format("{} tokens a block", spec.kv_block);
  require({0, blocks, 0}, spec.at("kv_block"), found);
  require({0, 0, blocks * passes}, spec.at("kv_block"), fmt::format("{} and {:.0f} passes", found, passes));
}

}  // namespace

void check_model_size(const ModelConfig& model) {
  double sum = 0, experts = 0;
  for (const LayerSpec& layer : model.layers) experts += real(experts_of(layer));
  for (const LayerSpec& layer : model.layers)
    if (real(experts_of(layer)) > kMostExperts || experts > kMostTensors)
      throw InputError(model.source + ": the number of experts",
                       fmt::format("{} in a layer, {:.0f} in all", experts_of(layer), experts),
                       fmt::format("at most {:.0f} and {:.0f}", kMostExperts, kMostTensors));
  std::vector<std::pair<const LayerSpec*, double>> kinds;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSpec& layer = model.layers[i];
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return *k.first == layer; });
    if (kind == kinds.end())
      kind = kinds.insert(kinds.end(), {&layer, parameters(model, layer_weights(model, layer),
                                                           fmt::format("layers.{}.", i))});
    sum += kind->second;
  }
  sum += parameters(model, embedding_weights(model), "") + parameters(model, head_weights(model), "");
  if (sum > kMostParameters)
    throw InputError(model.source + ": hidden_size, vocab_size, num_hidden_layers and the other sizes",
                     fmt::format("{:.4g} parameters together", sum),
                     fmt::format("at most {:.4g}", kMostParameters));
}

void check_value_sizes(const WorkloadSpec& spec, const ModelConfig& model) {
  double width = std::max(widest(embedding_weights(model)), widest(head_weights(model)));
  double top_k = 1;
  const LayerSpec* last = nullptr;
  for (const LayerSpec& layer : model.layers) {
    if (last && *last == layer) continue;
    last = &layer;
    LayerSpec light = layer;  // one expert is as wide as the next
    if (auto* moe = std::get_if<MoeSpec>(&light.ffn)) {
      top_k = std::max(top_k, real(moe->top_k));
      moe->experts = 1;
    }
    width = std::max(width, widest(layer_weights(model, light)));
    if (const auto* m = std::get_if<MambaSpec>(&layer.mixer))
      width = std::max(width, real(m->inner()) * real(m->state));
    if (const auto* d = std::get_if<DeltaNetSpec>(&layer.mixer))
      width = std::max(width, real(d->values()) * real(d->key_dim));
  }
  double tokens = real(spec.batch) * (real(spec.sequence) + real(spec.steps));
  if (spec.prefill)
    tokens += real(spec.prefill->batch) *
              (real(spec.prefill->cached) + real(spec.steps) * real(spec.prefill->tokens));
  if (tokens * width * top_k > real(kMostElements))
    throw InputError(spec.at("batch"),
                     fmt::format("{:.0f} tokens of a model up to {:.0f} wide", tokens, width * top_k),
                     fmt::format("at most {} elements in one tensor", kMostElements));
}

void check_trace_size(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place) {
  const bool train = spec.phase == Phase::kTrain;
  Pass pass;
  pass.phase = spec.phase;
  double passes = real(train ? spec.train.microbatches : spec.steps);
  std::string where = spec.at(train ? "train.microbatches" : "steps");
  if (spec.phase == Phase::kPrefill && spec.chunk > 0) {
    passes = std::ceil(real(spec.sequence) / real(spec.chunk));
    where = spec.at("chunk");
  }
  if (passes == 1) where = model.source + ": num_hidden_layers";
  const std::string found = passes == 1 ? fmt::format("{} layers", model.layers.size())
                                        : fmt::format("{:.0f} passes over the layers", passes);
  require({passes, passes, passes}, where, found);
  const int chunks = spec.parallel.virtual_stages;
  for (int c = 0; c < chunks; ++c)
    if (!train) check_blocks(spec, model, stage_of(model, place, chunks, c), passes);

  // A pass of a token a sample has as many kernels as any.
  if (train)
    pass.groups = {{1, 2 * place.cp * place.tp, 0, 0, 0, ""}};
  else
    pass.groups = {{spec.batch, 1, spec.sequence, spec.sequence + spec.steps, spec.sequence, "kv"}};
  RankPlace alone = place;
  if (!train) alone.cp = 1;
  WorkloadSpec plain = spec;
  plain.experts.routing = Routing::kBalanced;
  ProgramCache programs(model, plain, alone);
  programs.set_pass(pass);
  const bool again = spec.train.recompute != Recompute::kNone;
  const double times = passes * (train ? (again ? 4 : 3) : 1);  // forward, two gradients, once more
  Counts counts;
  for (int c = 0; c < chunks; ++c) {
    const Stage stage = stage_of(model, place, chunks, c);
    for (std::int64_t i = stage.layers.from; i < stage.layers.to; ++i) {
      const Program& program = programs.layer(i);
      counts.add(program, times);
      counts.tensors += real(static_cast<std::int64_t>(program.weights->weights.size())) * (train ? 3 : 1);
    }
  }
  require(counts, where, found);
}

}  // namespace hyperoffload

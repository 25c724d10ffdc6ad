// A training step: work, saved activations, recomputation, gradients, optimizer, schedules, detail.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/workload/schedule.h"
#include "test/workload/support.h"
#include "test/workload/tiny_models.h"

namespace hyperoffload {
namespace {

// small_llama(): its sizes once more, for formulas.
constexpr std::int64_t kLayers = 4, kHidden = 16, kHeads = 8, kKv = 4, kDim = 4, kInter = 24, kVocab = 30;
constexpr std::int64_t kLayerMatrices =
    kHidden * kHeads * kDim + 2 * kHidden * kKv * kDim + kHeads * kDim * kHidden + 3 * kHidden * kInter;
constexpr std::int64_t kParameters =
    2 * kVocab * kHidden + kLayers * (kLayerMatrices + 2 * kHidden) + kHidden;

WorkloadSpec training(std::int64_t batch, std::int64_t sequence) {
  WorkloadSpec spec;
  spec.phase = Phase::kTrain;
  spec.batch = batch;
  spec.sequence = sequence;
  return spec;
}

Graph small(const WorkloadSpec& spec) {
  return generate_trace(spec, parse_model_config(small_llama(), "small.json"));
}

double flops_of_phase(const Graph& g, const std::string& phase) {
  double sum = 0;
  for (const Op& op : g.ops())
    if (op.phase == phase) sum += op.flops.value_or(Flops(0)).value;
  return sum;
}

// Bytes of activations alive after the last forward op (phase "forward") that are read again later.
std::int64_t saved_bytes(const Graph& g) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < g.ops().size(); ++i)
    if (g.ops()[i].phase == "forward") last = i;
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < g.tensors().size(); ++t) {
    const auto accesses = g.accesses(TensorId(t));
    if (g.tensors()[t].kind != TensorKind::kActivation || accesses.empty()) continue;
    if (accesses.front().op.index() <= last && accesses.back().op.index() > last)
      sum += g.tensors()[t].bytes.value;
  }
  return sum;
}

// Most bytes of activations alive at any op.
std::int64_t activation_peak(const Graph& g) {
  std::vector<std::int64_t> change(g.ops().size() + 1);
  for (std::size_t t = 0; t < g.tensors().size(); ++t) {
    const auto accesses = g.accesses(TensorId(t));
    if (g.tensors()[t].kind != TensorKind::kActivation || accesses.empty()) continue;
    change[accesses.front().op.index()] += g.tensors()[t].bytes.value;
    change[accesses.back().op.index() + 1] -= g.tensors()[t].bytes.value;
  }
  std::int64_t now = 0, peak = 0;
  for (std::int64_t c : change) peak = std::max(peak, now += c);
  return peak;
}

}  // namespace

TEST_CASE("backward does twice the forward products, flash attention two and a half times") {
  const std::int64_t b = 2, s = 32;
  const Graph g = small(training(b, s));
  const double products = 2.0 * static_cast<double>(b * s * (kLayers * kLayerMatrices + kVocab * kHidden));
  const double attention = static_cast<double>(kLayers * b * (s * (s + 1) / 2) * kHeads * 4 * kDim);
  CHECK(flops_of_phase(g, "forward") == Approx(products + attention).epsilon(1e-14));
  CHECK(flops_of_phase(g, "backward") == Approx(2 * products + 2.5 * attention).epsilon(1e-14));
  CHECK(nlohmann::json::parse(g.meta_json())["model_flops"].get<double>() ==
        Approx(3 * (products + attention)).epsilon(1e-14));
}

TEST_CASE("weights, gradients and states take 2, 2 and 12 bytes a parameter, fp32 gradients 4") {
  WorkloadSpec spec = training(2, 32);
  Graph g = small(spec);
  CHECK(bytes_of_kind(g, TensorKind::kWeight).value == 2 * kParameters);
  CHECK(bytes_of_kind(g, TensorKind::kGradient).value == 2 * kParameters);
  CHECK(bytes_of_kind(g, TensorKind::kOptimizer).value == 12 * kParameters);
  spec.train.gradient_dtype = DataType::kFp32;
  CHECK(bytes_of_kind(small(spec), TensorKind::kGradient).value == 4 * kParameters);
  spec.dtype = DataType::kFp32;  // its own master
  CHECK(bytes_of_kind(small(spec), TensorKind::kOptimizer).value == 8 * kParameters);
}

TEST_CASE("a step without recomputation keeps what the backward kernels read, and only that") {
  const std::int64_t b = 2, s = 32, t = b * s, e = 2;
  const Graph g = small(training(b, s));
  // A layer: its input, two normed inputs, q, k, v, attention's output and log-sums, the sum after
  // attention, gate and up, their product.
  const std::int64_t layer =
      t * e *
          (2 * kHidden + kHeads * kDim + 2 * kKv * kDim + kHeads * kDim + kHidden + kHidden + 3 * kInter) +
      t * kHeads * 4;
  // The head: its input, the normed input, logits, and three numbers a token of the loss.
  const std::int64_t head = t * e * (2 * kHidden + kVocab) + 12 * t;
  CHECK(saved_bytes(g) == kLayers * layer + head);
}

TEST_CASE("full recomputation keeps a layer's input only and does its forward again") {
  const std::int64_t b = 2, s = 32, t = b * s, e = 2;
  WorkloadSpec spec = training(b, s);
  spec.train.recompute = Recompute::kFull;
  const Graph g = small(spec);
  CHECK(saved_bytes(g) == kLayers * t * e * kHidden + t * e * (2 * kHidden + kVocab) + 12 * t);
  // All but the last product of each layer, whose result nothing needs again.
  const double again = flops_of_phase(g, "forward") -
                       2.0 * static_cast<double>(t * (kVocab * kHidden + kLayers * kInter * kHidden));
  CHECK(flops_of_phase(g, "recompute") == Approx(again).epsilon(1e-14));
  CHECK(flops_of_phase(g, "backward") == flops_of_phase(small(training(b, s)), "backward"));
  CHECK(activation_peak(g) < activation_peak(small(training(b, s))));
}

TEST_CASE("selective recomputation drops the named kernels' results and does no product again") {
  const std::int64_t b = 2, s = 32, t = b * s, e = 2;
  WorkloadSpec spec = training(b, s);
  const std::int64_t all = saved_bytes(small(spec));
  spec.train.recompute = Recompute::kSelective;
  const Graph g = small(spec);
  CHECK(all - saved_bytes(g) ==
        kLayers * t * e * (2 * kHidden + kInter));  // two normed inputs, one product of gate and up
  CHECK(flops_of_phase(g, "recompute") == 0);
  spec.train.recompute_kernels = {"attention"};
  const Graph attention = small(spec);
  CHECK(all - saved_bytes(attention) == kLayers * (t * e * kHeads * kDim + 4 * t * kHeads));
  CHECK(flops_of_phase(attention, "recompute") > 0);
}

TEST_CASE("recomputation by layer applies to the first layers of the stage") {
  WorkloadSpec spec = training(2, 32);
  spec.train.recompute = Recompute::kLayers;
  spec.train.recompute_layers = 3;
  const Graph g = small(spec);
  std::set<int> layers;
  for (const Op& op : g.ops())
    if (op.phase == "recompute") layers.insert(op.layer);
  CHECK(layers == std::set<int>{0, 1, 2});
}

TEST_CASE("micro-batches do the same work with less alive, and add up their gradients") {
  WorkloadSpec spec = training(8, 32);
  const Graph one = small(spec);
  spec.train.microbatches = 8;
  const Graph eight = small(spec);
  const double pairs_alike = flops_of_phase(one, "forward");
  CHECK(flops_of_phase(eight, "forward") == Approx(pairs_alike).epsilon(1e-14));
  CHECK(bytes_of_kind(eight, TensorKind::kGradient) == bytes_of_kind(one, TensorKind::kGradient));
  CHECK(activation_peak(eight) < activation_peak(one) / 4);
  // The first writes, the others read and write: fp traffic of a weight gradient in bytes.
  const Op& first = op_named(eight, "mb.0.layers.0.down.weight_grad");
  const Op& second = op_named(eight, "mb.1.layers.0.down.weight_grad");
  CHECK((second.hbm_bytes->value - first.hbm_bytes->value) == 2 * kInter * kHidden);
  CHECK(second.reads.size() == first.reads.size() + 1);
}

TEST_CASE("the optimizer reads gradients, updates states and writes weights") {
  const Graph g = small(training(2, 32));
  std::int64_t traffic = 0;
  for (const Op& op : g.ops())
    if (op.phase == "optimizer") traffic += op.hbm_bytes->value;
  CHECK(traffic == (2 + 2 * 12 + 2) * kParameters);
}

TEST_CASE("an optimizer on the host works in the pool and its states start there") {
  WorkloadSpec spec = training(2, 32);
  spec.train.optimizer_on_host = true;
  const Graph g = small(spec);
  int updates = 0;
  for (const Op& op : g.ops()) {
    if (op.kernel != "adamw") continue;
    ++updates;
    CHECK(op.memory == Tier::kPool);
    CHECK(g.engines()[op.engine.index()] == "host");
  }
  CHECK(updates > 0);
  for (const Tensor& t : g.tensors())
    if (t.kind == TensorKind::kOptimizer) CHECK(t.initial == Tier::kPool);
}

TEST_CASE("a tied table has one gradient, from the head and from the embedding") {
  const Graph g = generate_trace(
      training(2, 32), parse_model_config(small_llama(R"(, "tie_word_embeddings": true)"), "small.json"));
  CHECK(bytes_of_kind(g, TensorKind::kGradient).value == 2 * (kParameters - kVocab * kHidden));
  const Op& embed = op_named(g, "embed.grad");
  CHECK(std::any_of(embed.reads.begin(), embed.reads.end(),
                    [&](TensorId t) { return g.tensor(t).name == "embed_tokens.grad"; }));
}

TEST_CASE("an expert no token visits has a gradient of zero") {
  WorkloadSpec spec = training(1, 2);  // 4 assignments for 8 experts
  const Graph g = generate_trace(spec, parse_model_config(small_moe(), "small.json"));
  int zeros = 0;
  for (const Op& op : g.ops()) zeros += op.kernel == "zero" ? 1 : 0;
  CHECK(zeros == 4 * 4);
}

TEST_CASE("each pass runs once, forward before backward, one after the other in 1F1B") {
  for (int pp : {1, 2, 4})
    for (int chunks : {1, 2, 3})
      for (int rank = 0; rank < pp; ++rank)
        for (int m : {4, 8})
          for (Schedule schedule : {Schedule::k1F1B, Schedule::kGPipe}) {
            const auto steps = pipeline_schedule(schedule, pp, rank, chunks, m, "train");
            CHECK(steps.size() == static_cast<std::size_t>(2 * m * chunks));
            std::set<std::pair<int, int>> forward, backward;
            int alive = 0, most = 0;
            for (const PassStep& step : steps) {
              const std::pair<int, int> key{step.microbatch, step.chunk};
              if (step.backward) {
                CHECK(forward.count(key) == 1);
                CHECK(backward.insert(key).second);
                --alive;
              } else {
                CHECK(forward.insert(key).second);
                most = std::max(most, ++alive);
              }
            }
            // In flight: as many as stages from here to the end.
            if (schedule == Schedule::k1F1B && chunks == 1) CHECK(most == std::min(m, pp - rank));
            if (schedule == Schedule::kGPipe) CHECK(most == m * chunks);
          }
}

TEST_CASE("interleaved passes wait for the ranks before them in the order those send") {
  // Every rank runs chunk c of micro-batch m after the rank before has; together no rank waits for ever.
  const int pp = 4, chunks = 2, m = 8;
  std::vector<std::vector<PassStep>> steps;
  for (int r = 0; r < pp; ++r) steps.push_back(pipeline_schedule(Schedule::k1F1B, pp, r, chunks, m, "train"));
  std::vector<std::size_t> next(pp, 0);
  std::set<std::tuple<bool, int, int>> done;  // backward, micro-batch, virtual stage
  const auto ready = [&](int rank, const PassStep& s) {
    const int stage = s.chunk * pp + rank;
    if (!s.backward) return stage == 0 || done.count({false, s.microbatch, stage - 1}) > 0;
    return stage == pp * chunks - 1 ? done.count({false, s.microbatch, stage}) > 0
                                    : done.count({true, s.microbatch, stage + 1}) > 0;
  };
  bool moved = true;
  while (moved) {
    moved = false;
    for (int r = 0; r < pp; ++r)
      while (next[r] < steps[r].size() && ready(r, steps[r][next[r]])) {
        const PassStep& s = steps[r][next[r]++];
        done.insert({s.backward, s.microbatch, s.chunk * pp + r});
        moved = true;
      }
  }
  for (int r = 0; r < pp; ++r) CHECK(next[r] == steps[r].size());
}

TEST_CASE("pipeline stages pass hidden states on and gradients back") {
  WorkloadSpec spec = training(4, 32);
  spec.train.microbatches = 4;
  spec.parallel.pp = 2;
  const auto count = [&](int rank, const std::string& kind, const std::string& phase) {
    spec.parallel.rank = rank;
    const Graph g = small(spec);
    int n = 0;
    for (const Op& op : g.ops())
      if (op.collective && op.collective->kind == kind && op.phase == phase) {
        CHECK(op.collective->bytes.value == 32 * kHidden * 2);
        ++n;
      }
    return n;
  };
  CHECK(count(0, "send", "forward") == 4);
  CHECK(count(0, "recv", "backward") == 4);
  CHECK(count(0, "recv", "forward") == 0);
  CHECK(count(1, "recv", "forward") == 4);
  CHECK(count(1, "send", "backward") == 4);
}

TEST_CASE("by layer and by kernel do the same work and move the same bytes") {
  for (const std::string& config :
       {small_llama(), small_moe(), small_deepseek(), small_nemotron(), small_qwen_next()})
    for (const Phase phase : {Phase::kTrain, Phase::kPrefill, Phase::kDecode})
      for (int tp : {1, 2}) {
        WorkloadSpec spec = training(2, 32);
        spec.phase = phase;
        spec.parallel.tp = tp;
        const ModelConfig model = parse_model_config(config, "small.json");
        const Graph kernels = generate_trace(spec, model);
        spec.detail = Detail::kLayer;
        const Graph layers = generate_trace(spec, model);
        INFO(config << to_string(phase) << tp);
        CHECK(layers.ops().size() < kernels.ops().size() / 2);
        CHECK(total_flops(layers) == Approx(total_flops(kernels)).epsilon(1e-12));
        CHECK(total_hbm_bytes(layers) == total_hbm_bytes(kernels));
        for (TensorKind kind : {TensorKind::kWeight, TensorKind::kKv, TensorKind::kOptimizer,
                                TensorKind::kGradient, TensorKind::kInput})
          CHECK(bytes_of_kind(layers, kind) == bytes_of_kind(kernels, kind));
      }
}

TEST_CASE("a layer's workspace is the most its inner tensors take at once") {
  WorkloadSpec spec;
  spec.sequence = 32;
  spec.detail = Detail::kLayer;
  const Graph g = small(spec);
  const Op& layer = op_named(g, "layers.1.prefill");
  // Attention's four operands; or gate and up, their product and the sum that waits for the layer's end.
  const std::int64_t inner = 32 * 2 * std::max(2 * kHeads * kDim + 2 * kKv * kDim, 3 * kInter + kHidden);
  CHECK(layer.workspace.value == inner);
  CHECK(layer.reads.size() == 1 + 9);   // the hidden states and nine weights
  CHECK(layer.writes.size() == 1 + 1);  // hidden states and the cache
}

TEST_CASE("a prediction module adds a layer, a join and a second loss, on the same tables") {
  const std::string config = small_llama(R"(, "num_nextn_predict_layers": 1)");
  const ModelConfig model = parse_model_config(config, "small.json");
  WorkloadSpec spec = training(2, 32);
  const Graph without = generate_trace(spec, model);
  spec.mtp = 1;
  const Graph with = generate_trace(spec, model);
  const std::int64_t t = 2 * 32;
  const double attention = static_cast<double>(2 * (32 * 33 / 2) * kHeads * 4 * kDim);
  const double more =
      2.0 * static_cast<double>(t * (kLayerMatrices + 2 * kHidden * kHidden + kVocab * kHidden)) + attention;
  CHECK(flops_of_phase(with, "forward") - flops_of_phase(without, "forward") == Approx(more).epsilon(1e-12));
  CHECK((bytes_of_kind(with, TensorKind::kWeight) - bytes_of_kind(without, TensorKind::kWeight)).value ==
        2 * (kLayerMatrices + 2 * kHidden + 2 * kHidden * kHidden + 3 * kHidden));
  // Head, module and embedding add to the tables' gradients: one tensor each.
  CHECK(tensor_bytes(with, "lm_head.grad").value == 2 * kVocab * kHidden);
  CHECK(contains(input_error([&] {
                   spec.mtp = 2;
                   generate_trace(spec, model);
                 }),
                 "mtp: found 2, expected at most the model's 1 prediction modules"));
}

TEST_CASE("batches that don't divide, and training what has no backward pass, are refused") {
  WorkloadSpec spec = training(3, 32);
  spec.train.microbatches = 2;
  CHECK(contains(input_error([&] { small(spec); }),
                 "train.microbatches: found 2, expected a divisor of batch = 3"));
}

}  // namespace hyperoffload

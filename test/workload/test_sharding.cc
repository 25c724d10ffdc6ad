// Ranks together: every sharded tensor is whole, work is done once, collectives carry what they must.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/workload/weights.h"
#include "test/workload/support.h"
#include "test/workload/tiny_models.h"

namespace hyperoffload {
namespace {

struct Layout {
  int tp = 1, cp = 1, dp = 1, pp = 1, ep = 1, etp = 0, chunks = 1;
  bool sp = false;
  int world() const { return tp * cp * dp * pp; }
  int edp() const { return tp * cp * dp / (ep * (etp > 0 ? etp : ep == 1 ? tp : 1)); }
  std::string text() const {
    return fmt::format("tp {} cp {} dp {} pp {} ep {} etp {} chunks {} sp {}", tp, cp, dp, pp, ep, etp,
                       chunks, sp);
  }
};

WorkloadSpec training(const Layout& s, int zero, int rank) {
  WorkloadSpec spec;
  spec.phase = Phase::kTrain;
  spec.batch = 4;
  spec.sequence = 16;
  spec.parallel = {s.tp, s.pp, s.dp, s.ep, s.cp, s.etp, s.sp, s.chunks, rank};
  spec.train.zero = zero;
  spec.train.microbatches = 4;
  return spec;
}

std::vector<Layout> splits(bool experts, bool context) {
  std::vector<Layout> all;
  for (int tp : {1, 2, 4})
    for (int cp : {1, 2})
      for (int dp : {1, 2})
        for (int pp : {1, 2})
          for (int ep : {1, 2, 4}) {
            if (ep > 1 && (!experts || tp * cp * dp % ep != 0)) continue;
            if (cp > 1 && !context) continue;
            const Layout s{tp, cp, dp, pp, ep, 0, pp == 2 && ep == 1 ? 2 : 1, tp == 4 && dp == 2};
            all.push_back(s);
            if (ep > 1 && ep <= cp * dp && tp > 1) all.push_back({tp, cp, dp, pp, ep, tp, 1, false});
          }
  return all;
}

// Weights every rank of a tensor-parallel group holds whole.
bool shared_by_tp(const std::string& name) {
  static const std::set<std::string> whole = {
      "input_norm", "mlp_norm", "final_norm", "router",    "router_correction",  "q_norm",  "k_norm",
      "q_a_proj",   "q_a_norm", "kv_a_proj",  "kv_a_norm", "shared_expert_gate", "ssm_norm"};
  return whole.count(name.substr(name.find_last_of('.') + 1)) > 0;
}

// Bytes a tensor of the whole model has, by name.
std::map<std::string, std::int64_t> whole_weights(const ModelConfig& model) {
  std::map<std::string, std::int64_t> bytes;
  const auto add = [&](const std::vector<WeightSpec>& weights, const std::string& prefix) {
    for (const WeightSpec& w : weights)
      bytes[w.name == "embed_tokens" ? w.name : prefix + w.name] = 2 * elements(w);
  };
  add(embedding_weights(model), "");
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    add(layer_weights(model, model.layers[i]), fmt::format("layers.{}.", i));
  add(head_weights(model), "");
  return bytes;
}

void check_whole(const std::string& config, bool context, const std::set<std::string>& grouped) {
  const ModelConfig model = parse_model_config(config, "small.json");
  const std::map<std::string, std::int64_t> whole = whole_weights(model);
  const bool experts = config.find("expert") != std::string::npos;
  for (const Layout& s : splits(experts, context))
    for (int zero : {0, 1, 2, 3}) {
      std::map<std::string, std::int64_t> held, states;
      for (int rank = 0; rank < s.world(); ++rank) {
        const Graph g = generate_trace(training(s, zero, rank), model);
        for (const Tensor& t : g.tensors()) {
          std::string name = t.name;
          if (t.kind == TensorKind::kWeight) {
            if (const auto at = name.rfind(".shard"); at != std::string::npos) name.resize(at);
            held[name] += t.bytes.value;
          }
          if (t.kind == TensorKind::kOptimizer) states[name.substr(0, name.rfind('.'))] += t.bytes.value;
        }
      }
      INFO(s.text() << " zero " << zero);
      for (const auto& [name, bytes] : whole) {
        INFO(name);
        const bool expert = name.find("expert.") != std::string::npos;
        const int replicas = expert ? s.edp() : s.dp * s.cp;
        int copies = expert ? 1 : shared_by_tp(name) ? s.tp : 1;
        const std::string base = name.substr(name.find_last_of('.') + 1);
        if (base == "ssm_norm" && grouped.count("mamba")) copies = 1;  // Mamba's norm is as wide as its heads
        CHECK(held[name] == bytes * copies * (zero == 3 ? 1 : replicas));
        // fp32 master and two moments: 12 bytes for 2; correction biases aren't trained by gradient.
        const bool trained = base != "router_correction";
        CHECK(states[name] == (trained ? 6 * bytes * copies * (zero >= 1 ? 1 : replicas) : 0));
      }
      CHECK(held.size() == whole.size());
    }
}

double flops_of_all(const ModelConfig& model, const Layout& s, const std::string& without) {
  double sum = 0;
  for (int rank = 0; rank < s.world(); ++rank) {
    const Graph g = generate_trace(training(s, 0, rank), model);
    for (const Op& op : g.ops())
      if (op.kernel != without) sum += op.flops.value_or(Flops(0)).value;
  }
  return sum;
}

}  // namespace

TEST_CASE("over all ranks every weight and optimizer state of a dense model is whole") {
  check_whole(small_llama(), true, {});
}
TEST_CASE("over all ranks every weight and state of a mixture of experts is whole") {
  check_whole(small_moe(), true, {});
}
TEST_CASE("over all ranks every weight and state of a latent-attention model is whole") {
  check_whole(small_deepseek(), true, {});
}
TEST_CASE("over all ranks every weight and state of a hybrid model is whole") {
  check_whole(small_nemotron(), false, {"mamba"});
}
TEST_CASE("over all ranks every weight and state of a delta-rule model is whole") {
  check_whole(small_qwen_next(), false, {});
}

TEST_CASE("key/value heads fewer than ranks are held by several, each whole") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  std::int64_t k = 0, q = 0;
  for (int rank = 0; rank < 8; ++rank) {
    WorkloadSpec spec;
    spec.sequence = 8;
    spec.parallel.tp = 8;
    spec.parallel.rank = rank;
    const Graph g = generate_trace(spec, model);
    k += tensor_bytes(g, "layers.0.k_proj").value;
    q += tensor_bytes(g, "layers.0.q_proj").value;
  }
  CHECK(q == 2 * 16 * 32);
  CHECK(k == 2 * (2 * 16 * 16));  // 4 heads over 8 ranks: two copies
}

TEST_CASE("the ranks of a dense model do the work of one, once a replica") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  const double one = flops_of_all(model, {}, "");
  for (const Layout& s : splits(false, true)) {
    INFO(s.text());
    CHECK(flops_of_all(model, s, "") == Approx(one * s.dp).epsilon(1e-12));
  }
}

TEST_CASE("experts do their work once over all ranks, whatever the expert parallelism") {
  const ModelConfig model = parse_model_config(small_moe(), "small.json");
  // A router runs once for each token, and once more on each rank where experts are split like everything
  // else.
  const double one = flops_of_all(model, {}, "router");
  for (const Layout& s : splits(true, true)) {
    INFO(s.text());
    CHECK(flops_of_all(model, s, "router") == Approx(one * s.dp).epsilon(1e-12));
  }
}

TEST_CASE("caches are whole over tensor-parallel ranks, latent ones are copies") {
  const auto total = [](const std::string& config, int tp) {
    const ModelConfig model = parse_model_config(config, "small.json");
    std::int64_t sum = 0;
    for (int rank = 0; rank < tp; ++rank) {
      WorkloadSpec spec;
      spec.phase = Phase::kDecode;
      spec.batch = 3;
      spec.sequence = 50;
      spec.parallel.tp = tp;
      spec.parallel.rank = rank;
      sum += bytes_of_kind(generate_trace(spec, model), TensorKind::kKv).value;
    }
    return sum;
  };
  for (int tp : {2, 4}) {
    CHECK(total(small_llama(), tp) == total(small_llama(), 1));
    CHECK(total(small_qwen_next(), tp) == total(small_qwen_next(), 1));
    CHECK(total(small_deepseek(), tp) == tp * total(small_deepseek(), 1));
  }
}

TEST_CASE("ranks that share a prompt's tokens share its work and its cache, and gather keys and values") {
  for (const std::string& config : {small_llama(), small_deepseek()}) {
    const ModelConfig model = parse_model_config(config, "small.json");
    WorkloadSpec spec;
    spec.batch = 2;
    spec.sequence = 64;
    const Graph one = generate_trace(spec, model);
    const auto attention = [](const Graph& g) { return op_named(g, "layers.1.attention").flops->value; };
    double pairs = 0;
    int heads = 0;
    std::int64_t cache = 0;
    for (int rank = 0; rank < 4; ++rank) {
      spec.parallel.cp = 4;
      spec.parallel.rank = rank;
      const Graph g = generate_trace(spec, model);
      pairs += attention(g);
      for (const Op& op : g.ops()) heads += op.kernel == "lm_head" ? 1 : 0;
      CHECK(tensor_bytes(g, "lm_head") == tensor_bytes(one, "lm_head"));
      cache += bytes_of_kind(g, TensorKind::kKv).value;
      std::int64_t gathers = 0;
      for (const Op& op : g.ops())
        if (op.collective) {
          CHECK(op.collective->group == "cp");
          CHECK(op.collective->bytes == Bytes(tensor_bytes(one, "layers.1.kv")));
          ++gathers;
        }
      CHECK(gathers == 4);
    }
    CHECK(pairs == attention(one));
    CHECK(heads == 1);  // the rank that has the last token computes its logits
    CHECK(cache == bytes_of_kind(one, TensorKind::kKv).value);
  }
}

TEST_CASE("tensor parallelism sums each layer's two partial results, forwards and backwards") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  Layout s;
  s.tp = 2;
  WorkloadSpec spec = training(s, 0, 0);
  spec.train.microbatches = 1;
  const Graph g = generate_trace(spec, model);
  const std::int64_t hidden = 4 * 16 * 16 * 2;  // batch x sequence x hidden x 2 B
  std::int64_t count = 0;
  for (const Op& op : g.ops()) {
    if (!op.collective || op.collective->kind != "all-reduce") continue;
    CHECK(g.engines()[op.engine.index()] == "comm");
    CHECK(op.collective->group == "tp");
    if (op.layer < 0) continue;
    CHECK(op.collective->bytes.value == hidden);
    ++count;
  }
  CHECK(count == 4 * (2 + 2));
}

TEST_CASE("gradients of compressed vectors are summed over ranks, so that what lies before has whole ones") {
  const ModelConfig model = parse_model_config(small_deepseek(), "small.json");
  Layout s;
  s.tp = 2;
  WorkloadSpec spec = training(s, 0, 0);
  spec.train.microbatches = 1;
  const Graph g = generate_trace(spec, model);
  const std::int64_t tokens = 4 * 16, q_lora = 12, kv_width = 6 + 2;
  const auto all_reduced = [&](const std::string& name) {
    return op_named(g, "layers.1." + name + ".grad_all_reduce.grad").collective->bytes.value;
  };
  CHECK(all_reduced("q_latent") == 2 * tokens * q_lora);
  CHECK(all_reduced("kv_latent") == 2 * tokens * kv_width);
  // Then the hidden states' is whole, too: nothing to sum.
  for (const Op& op : g.ops()) CHECK(op.name.find("attn_in.grad_all_reduce") == std::string::npos);
  // The weights' gradients come after the sums.
  std::map<std::string, std::size_t> at;
  for (std::size_t i = 0; i < g.ops().size(); ++i) at[g.ops()[i].name] = i;
  CHECK(at["layers.1.q_a.weight_grad"] > at["layers.1.q_latent.grad_all_reduce.grad"]);
  CHECK(at["layers.1.q_norm.grad"] > at["layers.1.q_latent.grad_all_reduce.grad"]);
  CHECK(at["layers.1.kv_a.weight_grad"] > at["layers.1.kv_latent.grad_all_reduce.grad"]);
  // Of the routers of three layers each rank has a part: its columns of the experts.
  CHECK(op_named(g, "tp_gradient_sum").collective->bytes.value == 2 * 3 * 8 * 16);
}

TEST_CASE("weights that tensor-parallel ranks hold whole have their partial gradients summed once a step") {
  const std::int64_t layers = 4, hidden = 16, norms = layers * 2 * hidden + hidden;
  const auto sum_of = [&](const std::string& config, const std::string& group, int tp, bool sp, int dp,
                          int zero) {
    Layout s;
    s.tp = tp;
    s.sp = sp;
    s.dp = dp;
    const Graph g = generate_trace(training(s, zero, 0), parse_model_config(config, "small.json"));
    std::int64_t bytes = 0;
    int count = 0;
    for (const Op& op : g.ops())
      if (op.name == group + "_gradient_sum") {
        ++count;
        CHECK(op.collective->kind == "all-reduce");
        CHECK(op.collective->group == group);
        CHECK(op.hbm_bytes->value == 2 * op.collective->bytes.value);
        bytes += op.collective->bytes.value;
      }
    CHECK(count == (bytes > 0 ? 1 : 0));
    return bytes;
  };
  // Sequence parallel: each norm sees its rank's tokens.
  CHECK(sum_of(small_llama(), "tp", 2, true, 1, 0) == 2 * norms);
  CHECK(sum_of(small_llama(), "tp", 2, false, 1, 0) == 0);
  CHECK(sum_of(small_llama(), "tp", 2, true, 2, 1) == 2 * norms / 2);  // of shards
  // Qwen3's query and key norms see their rank's heads, routers their experts' columns.
  CHECK(sum_of(small_moe(), "tp", 2, false, 1, 0) == 2 * layers * (2 * 4 + 8 * hidden));
  CHECK(sum_of(small_moe(), "tp", 2, true, 1, 0) == 2 * (layers * (2 * 4 + 8 * hidden) + norms));
  // Latent attention, sequence parallel: down projections and their norms, too.
  const std::int64_t latent = 12 * hidden + 12 + (6 + 2) * hidden + 6;
  CHECK(sum_of(small_deepseek(), "tp", 2, true, 1, 0) == 2 * (layers * latent + 3 * 8 * hidden + norms));
  // 4 key/value heads over 8 ranks: two ranks hold each.
  const std::int64_t one_head = 4 * hidden;
  CHECK(sum_of(small_llama(), "kv", 8, false, 1, 0) == 2 * layers * 2 * one_head);
  CHECK(sum_of(small_llama(), "kv", 4, false, 1, 0) == 0);
}

TEST_CASE("ranks that share a key/value head take the time of so many for its gradients") {
  Layout s;
  s.tp = 8;
  WorkloadSpec spec = training(s, 0, 0);
  spec.collectives = CollectiveLink{BytesPerSecond(1e9), Seconds(1e-6)};
  const Graph g = generate_trace(spec, parse_model_config(small_llama(), "small.json"));
  const Op& op = op_named(g, "kv_gradient_sum");
  const double bytes = static_cast<double>(op.collective->bytes.value);
  CHECK(op.duration->value == Approx(2 * (1.0 / 2 * bytes / 1e9 + 1e-6)).epsilon(1e-12));
}

TEST_CASE("sequence parallelism replaces sums by gathers and scatters and keeps what rests split") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  Layout s;
  s.tp = 2;
  s.sp = true;
  WorkloadSpec spec = training(s, 0, 0);
  spec.train.microbatches = 1;
  const Graph g = generate_trace(spec, model);
  std::map<std::string, int> kinds;
  for (const Op& op : g.ops())
    if (op.collective && op.layer >= 0) ++kinds[op.collective->kind];
  CHECK(kinds == std::map<std::string, int>{{"all-gather", 4 * 4}, {"reduce-scatter", 4 * 4}});
  CHECK(tensor_bytes(g, "layers.1.mixer_add").value == 4 * 16 * 16 * 2 / 2);
}

TEST_CASE("gradients are reduced once a step without ZeRO, once a micro-batch from ZeRO 2 on") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  const auto reduced = [&](int zero, const std::string& kind) {
    Layout s;
    s.dp = 2;
    std::int64_t bytes = 0;
    const Graph g = generate_trace(training(s, zero, 0), model);
    for (const Op& op : g.ops())
      if (op.collective && op.phase == "backward" && op.collective->kind == kind)
        bytes += op.collective->bytes.value;
    return bytes;
  };
  const std::int64_t parameters =
      2 * 30 * 16 + 4 * (16 * 32 + 2 * 16 * 16 + 32 * 16 + 3 * 16 * 24 + 2 * 16) + 16;
  CHECK(reduced(0, "all-reduce") == 2 * parameters);
  CHECK(reduced(1, "reduce-scatter") == 2 * parameters);
  CHECK(reduced(2, "reduce-scatter") == 4 * 2 * parameters);
  CHECK(reduced(3, "reduce-scatter") == 4 * 2 * parameters);
}

TEST_CASE("a tied table's gradient is reduced once, when head and embedding have both added to it") {
  const ModelConfig model = parse_model_config(small_llama(R"(, "tie_word_embeddings": true)"), "small.json");
  for (int zero : {0, 2}) {
    Layout s;
    s.dp = 2;
    WorkloadSpec spec = training(s, zero, 0);
    spec.train.microbatches = 1;
    const Graph g = generate_trace(spec, model);
    int reductions = 0;
    bool embedded = false;
    for (const Op& op : g.ops()) {
      embedded |= op.name == "embed.grad";
      for (TensorId t : op.reads)
        if (op.collective && op.phase == "backward" && g.tensor(t).name == "embed_tokens.grad") {
          ++reductions;
          CHECK(embedded);
        }
    }
    CHECK(reductions == 1);
  }
}

TEST_CASE("ZeRO 3 gathers every weight before each use, the next layer's while one computes") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  Layout s;
  s.dp = 2;
  WorkloadSpec spec = training(s, 3, 0);
  spec.train.microbatches = 1;
  const Graph g = generate_trace(spec, model);
  std::int64_t gathered = 0;
  for (const Op& op : g.ops())
    if (op.collective && op.collective->kind == "all-gather") gathered += op.collective->bytes.value;
  const std::int64_t parameters =
      2 * 30 * 16 + 4 * (16 * 32 + 2 * 16 * 16 + 32 * 16 + 3 * 16 * 24 + 2 * 16) + 16;
  // Forwards and backwards; but the table of embeddings, which its backward pass doesn't read, and the head,
  // whose backward pass follows its forward pass, once.
  const std::int64_t table = 30 * 16, head = 30 * 16 + 16;
  CHECK(gathered == 2 * (2 * parameters - table - head));
  for (TensorId t : op_named(g, "lm_head.input_grad").reads)
    if (g.tensor(t).kind == TensorKind::kOther) CHECK(g.tensor(t).name == "lm_head.whole.head.forward");
  const Op& second = op_named(g, "layers.2.weights_all_gather.forward");
  REQUIRE(second.after.size() == 1);
  CHECK(g.op(second.after[0]).layer == 0);
}

TEST_CASE("gradient buckets carry the same bytes in fewer collectives") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  Layout s;
  s.dp = 2;
  const auto collectives = [&](std::int64_t bucket) {
    WorkloadSpec spec = training(s, 0, 0);
    spec.train.bucket_bytes = bucket;
    std::vector<std::int64_t> sizes;
    const Graph g = generate_trace(spec, model);
    for (const Op& op : g.ops())
      if (op.collective) sizes.push_back(op.collective->bytes.value);
    return sizes;
  };
  const auto sum = [](const std::vector<std::int64_t>& sizes) {
    std::int64_t total = 0;
    for (std::int64_t s : sizes) total += s;
    return total;
  };
  CHECK(collectives(0).size() == 6);  // embedding, four layers, head
  CHECK(collectives(8000).size() < 6);
  CHECK(sum(collectives(8000)) == sum(collectives(0)));
}

TEST_CASE("a collective's time is alpha-beta where the workload gives a link, else it has none") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  Layout s;
  s.tp = 4;
  WorkloadSpec spec = training(s, 0, 0);
  const Graph without = generate_trace(spec, model);
  CHECK_FALSE(op_named(without, "mb.0.layers.0.attn_out.all_reduce").duration.has_value());
  spec.collectives = CollectiveLink{BytesPerSecond(1e9), Seconds(1e-6)};
  const Graph with = generate_trace(spec, model);
  const Op& op = op_named(with, "mb.0.layers.0.attn_out.all_reduce");
  const double bytes = 16 * 16 * 2;  // one sample a micro-batch
  CHECK(op.duration->value == Approx(2 * (3.0 / 4 * bytes / 1e9 + 3 * 1e-6)).epsilon(1e-12));
}

TEST_CASE("numbers of ranks that don't fit are refused in one sentence") {
  const ModelConfig model = parse_model_config(small_llama(), "small.json");
  const auto refusal = [&](int tp, int pp, int ep) {
    WorkloadSpec spec;
    spec.sequence = 8;
    spec.parallel.tp = tp;
    spec.parallel.pp = pp;
    spec.parallel.ep = ep;
    return input_error([&] { generate_trace(spec, model); });
  };
  CHECK(contains(refusal(3, 1, 1),
                 "parallel.tp: found 3, expected a divisor of the model's 8 attention heads"));
  CHECK(contains(refusal(1, 5, 1), "parallel.pp: found 5 stages, expected at most one a layer: 4"));
  CHECK(contains(refusal(1, 1, 2), "parallel.ep: found 2, expected 1: the model has no experts"));
}

TEST_CASE("more expert ranks than the rest has are further replicas") {
  const ModelConfig model = parse_model_config(small_moe(), "small.json");
  WorkloadSpec spec;
  spec.sequence = 8;
  spec.parallel.ep = 4;
  const Graph g = generate_trace(spec, model);
  const auto meta = nlohmann::json::parse(g.meta_json());
  CHECK(meta["parallel"]["dp"] == 4);
  CHECK(meta["parallel"]["ranks"] == 4);
  CHECK(tensor_bytes(g, "layers.0.q_proj").value == 2 * 16 * 32);  // whole
  std::int64_t experts = 0;
  for (const Tensor& t : g.tensors()) experts += t.name.find("layers.0.expert.") == 0 ? 1 : 0;
  CHECK(experts == 2);
}

}  // namespace hyperoffload

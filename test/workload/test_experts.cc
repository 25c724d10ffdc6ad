// Latent attention and mixtures of experts, by formula.
#include <set>

#include "test/workload/support.h"
#include "test/workload/tiny_models.h"

namespace hyperoffload {
namespace {

WorkloadSpec spec_of(Phase phase, std::int64_t batch, std::int64_t sequence) {
  WorkloadSpec spec;
  spec.phase = phase;
  spec.batch = batch;
  spec.sequence = sequence;
  return spec;
}

Graph small(const WorkloadSpec& spec, const std::string& config) {
  return generate_trace(spec, parse_model_config(config, "small.json"));
}

std::set<std::string> experts_read(const Graph& g, const std::string& op) {
  std::set<std::string> names;
  for (TensorId t : op_named(g, op).reads)
    if (g.tensor(t).name.find("expert.") != std::string::npos) names.insert(g.tensor(t).name);
  return names;
}

constexpr std::int64_t kExpertBytes = 3 * 16 * 12 * 2;

}  // namespace

TEST_CASE("a pass over many tokens visits every expert, and its tokens meet two each") {
  const Graph g = small(spec_of(Phase::kPrefill, 2, 32), small_moe());
  const std::int64_t tokens = 64, rows = tokens * 2;
  const Op& up = op_named(g, "layers.0.experts_gate_up");
  CHECK(experts_read(g, "layers.0.experts_gate_up").size() == 8);
  CHECK_FALSE(up.known_after.has_value());  // all are read, whatever the router says
  CHECK(up.flops->value == 2.0 * rows * 16 * 24);
  CHECK(up.hbm_bytes->value == 8 * kExpertBytes * 2 / 3 + rows * (16 + 24) * 2);
  const Op& down = op_named(g, "layers.0.experts_down");
  CHECK(down.flops->value == 2.0 * rows * 12 * 16);
  CHECK(down.hbm_bytes->value == 8 * kExpertBytes / 3 + rows * (12 + 16) * 2);
  CHECK(op_named(g, "layers.0.router").flops->value == 2.0 * tokens * 16 * 8);
  CHECK(tensor_bytes(g, "layers.0.expert.3").value == kExpertBytes);
}

TEST_CASE("a single token visits its own experts, known only after the router") {
  const Graph g = small(spec_of(Phase::kDecode, 1, 10), small_moe());
  for (const std::string layer : {"layers.0.", "layers.3."}) {
    const Op& up = op_named(g, layer + "experts_gate_up");
    CHECK(experts_read(g, layer + "experts_gate_up").size() == 2);
    REQUIRE(up.known_after.has_value());
    CHECK(g.op(*up.known_after).name == layer + "router");
    CHECK(up.hbm_bytes->value == 2 * kExpertBytes * 2 / 3 + 2 * (16 + 24) * 2);
  }
  CHECK(bytes_of_kind(g, TensorKind::kWeight).value > 4 * 8 * kExpertBytes);  // the others are there, too
}

TEST_CASE(
    "balanced visits move on from layer to layer and step to step, so that all experts have their turn") {
  WorkloadSpec spec = spec_of(Phase::kDecode, 1, 10);
  spec.steps = 4;
  const Graph g = small(spec, small_moe());
  std::set<std::string> seen;
  for (int step = 0; step < 4; ++step) {
    const auto now = experts_read(g, "step." + std::to_string(step) + ".layers.0.experts_gate_up");
    seen.insert(now.begin(), now.end());
  }
  CHECK(seen.size() == 8);  // two a step, none twice
  const auto numbers = [&](const std::string& layer) {
    std::set<std::string> tails;
    for (const std::string& name : experts_read(g, "step.0." + layer + "experts_gate_up"))
      tails.insert(name.substr(name.rfind('.')));
    return tails;
  };
  CHECK(numbers("layers.0.") != numbers("layers.1."));
}

TEST_CASE("random routing draws distinct experts a token, the same for the same seed") {
  WorkloadSpec spec = spec_of(Phase::kDecode, 4, 10);
  spec.steps = 50;
  spec.experts.routing = Routing::kRandom;
  const Graph g = small(spec, small_moe());
  double visited = 0;
  for (int step = 0; step < 50; ++step) {
    const std::string op = "step." + std::to_string(step) + ".layers.1.experts_gate_up";
    const std::size_t n = experts_read(g, op).size();
    CHECK(n >= 2);
    CHECK(n <= 8);
    visited += static_cast<double>(n);
    CHECK(op_named(g, op).flops->value == 2.0 * 8 * 16 * 24);  // four tokens, two experts each
  }
  // Of 8 experts, 4 tokens with 2 each leave (6/8)^4 unvisited.
  CHECK(visited / 50 == Approx(8 * (1 - 0.31640625)).epsilon(0.08));
  CHECK(graph_to_json(g) == graph_to_json(small(spec, small_moe())));
  spec.experts.seed = 7;
  CHECK(graph_to_json(g) != graph_to_json(small(spec, small_moe())));
}

TEST_CASE("expert parallelism sends each token's vectors out and home again") {
  WorkloadSpec spec = spec_of(Phase::kPrefill, 2, 32);
  spec.parallel.ep = 4;
  spec.parallel.dp = 4;
  const Graph g = small(spec, small_moe());
  const Op& out = op_named(g, "layers.0.dispatch_all_to_all");
  const Op& home = op_named(g, "layers.0.combine_all_to_all");
  for (const Op* op : {&out, &home}) {
    CHECK(op->collective->kind == "all-to-all");
    CHECK(op->collective->group == "ep");
    CHECK(op->collective->bytes.value == 64 * 2 * 16 * 2);  // tokens x experts a token x hidden x 2 B
  }
  CHECK(experts_read(g, "layers.0.experts_gate_up") ==
        std::set<std::string>{"layers.0.expert.0", "layers.0.expert.1"});
}

TEST_CASE("a decode step of latent attention absorbs the up-projections and reads compressed vectors") {
  // small_deepseek(): 8 heads, nope 4, rope 2, value 4, latent 6.
  const std::int64_t batch = 3, s = 50;
  const Graph g = small(spec_of(Phase::kDecode, batch, s), small_deepseek());
  const std::int64_t token = (6 + 2) * 2;
  CHECK(tensor_bytes(g, "layers.0.kv").value == batch * (s + 1) * token);
  CHECK(op_named(g, "layers.0.absorb_q").flops->value == 2.0 * batch * 8 * 4 * 6);
  CHECK(op_named(g, "layers.0.absorb_v").flops->value == 2.0 * batch * 8 * 6 * 4);
  const Op& attention = op_named(g, "layers.0.attention");
  CHECK(attention.flops->value == 2.0 * batch * (s + 1) * 8 * (6 + 2 + 6));
  CHECK(attention.hbm_bytes->value == batch * ((s + 1) * token + 8 * (6 + 2) * 2 + 8 * 6 * 2));
}

TEST_CASE("a whole prompt of latent attention is expanded to keys and values a head") {
  const std::int64_t s = 40;
  const Graph g = small(spec_of(Phase::kPrefill, 1, s), small_deepseek());
  CHECK(op_named(g, "layers.0.kv_b").flops->value == 2.0 * s * 6 * 8 * (4 + 4));
  CHECK(op_named(g, "layers.0.attention").flops->value == 2.0 * (s * (s + 1) / 2) * 8 * (4 + 2 + 4));
  // Dense first, experts from the second layer on; the shared expert runs for every token.
  CHECK(op_named(g, "layers.0.gate_up").flops->value == 2.0 * s * 16 * 2 * 24);
  CHECK(op_named(g, "layers.1.shared_gate_up").flops->value == 2.0 * s * 16 * 2 * 12);
}

TEST_CASE("an indexer scores every token and lets attention read top_k of them") {
  const auto path = published_config("deepseek-ai--DeepSeek-V3.2_config.json");
  if (!path) return;
  const ModelConfig model = load_model_config(*path);
  WorkloadSpec spec = spec_of(Phase::kDecode, 2, 32767);
  spec.kv_block = 64;
  const Graph g = generate_trace(spec, model);
  const Op& scores = op_named(g, "layers.0.indexer");
  CHECK(scores.flops->value == 2.0 * 2 * 32768 * 64 * 128);  // heads x width
  const Op& attention = op_named(g, "layers.0.attention");
  CHECK(attention.flops->value == 2.0 * 2 * 2048 * 128 * (576 + 512));
  REQUIRE(attention.known_after.has_value());
  CHECK(g.op(*attention.known_after).name == "layers.0.indexer");
  std::int64_t blocks = 0;
  for (TensorId t : attention.reads) blocks += g.tensor(t).kind == TensorKind::kKv ? 1 : 0;
  CHECK(blocks == 2048 / 64);
}

TEST_CASE("compressed attention sees a window and the complete entries before, or those picked of them") {
  // Position p sees min(p + 1, 5) tokens and (p + 1) / ratio entries, at most 3 of them with the indexer.
  const auto pairs = [](std::int64_t from, std::int64_t to, std::int64_t ratio, std::int64_t top_k) {
    std::int64_t sum = 0;
    for (std::int64_t p = from; p < to; ++p) {
      const std::int64_t entries = ratio > 0 ? (p + 1) / ratio : 0;
      sum += std::min<std::int64_t>(p + 1, 5) + (top_k > 0 ? std::min(entries, top_k) : entries);
    }
    return static_cast<double>(sum);
  };
  const std::int64_t ratios[] = {0, 4, 8}, top_k[] = {0, 3, 0};
  for (std::int64_t length : {3, 4, 17, 64}) {
    const Graph prefill = small(spec_of(Phase::kPrefill, 2, length), small_deepseek_v4());
    const Graph decode = small(spec_of(Phase::kDecode, 2, length), small_deepseek_v4());
    for (int layer = 0; layer < 3; ++layer) {
      const std::string op = "layers." + std::to_string(layer) + ".attention";
      INFO(op << length);
      CHECK(op_named(prefill, op).flops->value ==
            4.0 * 2 * 4 * 8 * pairs(0, length, ratios[layer], top_k[layer]));
      CHECK(op_named(decode, op).flops->value ==
            4.0 * 2 * 4 * 8 * pairs(length, length + 1, ratios[layer], top_k[layer]));
    }
  }
  const Graph g = small(spec_of(Phase::kDecode, 2, 63), small_deepseek_v4());
  CHECK(op_named(g, "layers.1.indexer").flops->value == 2.0 * 2 * 16 * 2 * 6);  // 16 entries of 64 tokens
  CHECK(tensor_bytes(g, "layers.1.kv").value == 2 * 5 * 8 * 2);
  CHECK(tensor_bytes(g, "layers.1.kv.entries").value == 2 * 16 * 8 * 2);
  CHECK(tensor_bytes(g, "layers.2.kv.entries").value == 2 * 8 * 8 * 2);
  CHECK(tensor_bytes(g, "layers.1.mlp_streams.expanded").value == 2 * 4 * 16 * 2);  // four streams
}

}  // namespace hyperoffload

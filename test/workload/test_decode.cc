// Caches: chunks of a prompt, steps that append, blocks, windows, selection; prompts beside decoding.
#include <set>

#include "sim/workload/kv_cache.h"
#include "test/workload/support.h"
#include "test/workload/tiny_models.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kTokenBytes = 2 * 4 * 4 * 2;  // small_llama(): K and V, 4 heads of 4, bf16

WorkloadSpec spec_of(Phase phase, std::int64_t batch, std::int64_t sequence) {
  WorkloadSpec spec;
  spec.phase = phase;
  spec.batch = batch;
  spec.sequence = sequence;
  return spec;
}

Graph small(const WorkloadSpec& spec, const std::string& config = small_llama()) {
  return generate_trace(spec, parse_model_config(config, "small.json"));
}

std::int64_t seen_one_by_one(std::int64_t from, std::int64_t to, std::int64_t window, bool chunked) {
  std::int64_t sum = 0;
  for (std::int64_t p = from; p < to; ++p) {
    std::int64_t keys = p + 1;
    if (window > 0) keys = chunked ? p % window + 1 : std::min(keys, window);
    sum += keys;
  }
  return sum;
}

std::set<std::string> read_blocks(const Graph& g, const std::string& op) {
  std::set<std::string> names;
  for (TensorId t : op_named(g, op).reads)
    if (g.tensor(t).kind == TensorKind::kKv) names.insert(g.tensor(t).name);
  return names;
}

}  // namespace

TEST_CASE("the pairs a mask lets through are counted exactly") {
  for (std::int64_t cached : {0, 1, 5, 12})
    for (std::int64_t tokens : {1, 3, 8, 20})
      for (std::int64_t window : {0, 1, 4, 100})
        for (bool chunked : {false, true})
          CHECK(attended_pairs(tokens, cached, window, chunked) ==
                seen_one_by_one(cached, cached + tokens, window, chunked));
}

TEST_CASE("a prompt in chunks does the work of a whole one, over a cache that fills") {
  WorkloadSpec spec = spec_of(Phase::kPrefill, 2, 64);
  const Graph whole = small(spec);
  spec.chunk = 24;  // 24, 24, 16
  const Graph chunks = small(spec);
  // The head computes two more last tokens a sample.
  CHECK(total_flops(chunks) - total_flops(whole) == Approx(2.0 * 2 * 2 * 30 * 16));
  CHECK(bytes_of_kind(chunks, TensorKind::kKv) == bytes_of_kind(whole, TensorKind::kKv));
  const Op& first = op_named(chunks, "chunk.0.layers.0.kv_append");
  const Op& second = op_named(chunks, "chunk.1.layers.0.kv_append");
  CHECK(first.reads.size() == 2);   // K and V: the cache is new
  CHECK(second.reads.size() == 3);  // and the cache, added to in place
  const Op& attention = op_named(chunks, "chunk.1.layers.0.attention");
  CHECK(attention.hbm_bytes->value ==
        2 * (48 * kTokenBytes + 2 * 24 * 32 * 2));  // 48 tokens of cache, Q and the result
}

TEST_CASE("decode over several steps appends to one cache that is large enough for all") {
  WorkloadSpec spec = spec_of(Phase::kDecode, 3, 100);
  spec.steps = 5;
  const Graph g = small(spec);
  CHECK(tensor_bytes(g, "layers.0.kv").value == 3 * 105 * kTokenBytes);
  for (int step : {0, 4}) {
    const Op& attention = op_named(g, "step." + std::to_string(step) + ".layers.2.attention");
    CHECK(attention.flops->value == 4.0 * 3 * static_cast<double>(101 + step) * 32);
    CHECK(attention.hbm_bytes->value == 3 * ((101 + step) * kTokenBytes + 2 * 32 * 2));
  }
}

TEST_CASE("a cache in blocks grows block by block: those of new tokens are born when written") {
  WorkloadSpec spec = spec_of(Phase::kDecode, 3, 100);
  spec.steps = 40;
  spec.kv_block = 16;
  const Graph g = small(spec);
  std::int64_t persistent = 0, born = 0;
  for (const Tensor& t : g.tensors()) {
    if (t.kind != TensorKind::kKv || t.name.find("layers.0.") != 0) continue;
    (t.persistent ? persistent : born) += t.bytes.value;
  }
  CHECK(persistent == 3 * 112 * kTokenBytes);  // seven blocks hold the first hundred tokens
  CHECK(persistent + born == 3 * 140 * kTokenBytes);
  CHECK(read_blocks(g, "step.0.layers.0.attention").size() == 7);
  CHECK(read_blocks(g, "step.39.layers.0.attention").size() == 9);
  // The 113th token opens the eighth block.
  const Op& opens = op_named(g, "step.12.layers.0.kv_append");
  REQUIRE(opens.writes.size() == 1);
  CHECK(g.tensor(opens.writes[0]).name == "layers.0.kv.7");
  CHECK(g.birth(opens.writes[0]) == g.accesses(opens.writes[0]).front().op);
  CHECK(opens.reads.size() == 2);
}

TEST_CASE("hundreds of steps by layer stay small") {
  WorkloadSpec spec = spec_of(Phase::kDecode, 8, 1000);
  spec.steps = 300;
  spec.kv_block = 64;
  spec.detail = Detail::kLayer;
  const Graph g = small(spec);
  CHECK(g.ops().size() == 300 * (4 + 3));
}

TEST_CASE("selected blocks: as many as top_k tokens fill, the newest among them, some the same as before") {
  WorkloadSpec spec = spec_of(Phase::kDecode, 2, 1000);
  spec.steps = 10;
  spec.kv_block = 10;
  spec.sparse.top_k = 100;
  spec.sparse.reuse = 0.8;
  const Graph g = small(spec);
  int same = 0, all = 0;
  for (int step = 0; step < 10; ++step) {
    const auto now = read_blocks(g, "step." + std::to_string(step) + ".layers.0.attention");
    CHECK(now.size() == 10);
    CHECK(now.count("layers.0.kv.100") == 1);  // the block written now
    if (step == 0) continue;
    for (const std::string& name :
         read_blocks(g, "step." + std::to_string(step - 1) + ".layers.0.attention")) {
      if (name == "layers.0.kv.100") continue;
      same += now.count(name) > 0 ? 1 : 0;
      ++all;
    }
  }
  CHECK(static_cast<double>(same) / all > 0.6);
  CHECK(static_cast<double>(same) / all < 0.95);
  const Op& attention = op_named(g, "step.3.layers.0.attention");
  CHECK(attention.flops->value == 4.0 * 2 * 100 * 32);
  CHECK(attention.hbm_bytes->value == 2 * (100 * kTokenBytes + 2 * 32 * 2));
  CHECK(graph_to_json(g) == graph_to_json(small(spec)));  // seeded, so the same every time
}

TEST_CASE("a sliding window keeps its window and reads no more") {
  // gpt-oss-20b: every other layer sees 128 tokens.
  const auto path = published_config("openai--gpt-oss-20b_config.json");
  if (!path) return;
  const ModelConfig model = load_model_config(*path);
  const Graph g = generate_trace(spec_of(Phase::kDecode, 1, 4096), model);
  const std::int64_t token = 2 * 8 * 64 * 2;
  CHECK(tensor_bytes(g, "layers.0.kv").value == 128 * token);
  CHECK(tensor_bytes(g, "layers.1.kv").value == 4097 * token);
  CHECK(op_named(g, "layers.0.attention").flops->value == 4.0 * 128 * 64 * 64);
  CHECK(op_named(g, "layers.1.attention").flops->value == 4.0 * 4097 * 64 * 64);
}

TEST_CASE("recurrent layers keep a state of fixed size, whatever the length") {
  const auto state = [](std::int64_t sequence) {
    const Graph g = small(spec_of(Phase::kDecode, 2, sequence), small_nemotron());
    return tensor_bytes(g, "layers.0.kv.ssm_state").value;
  };
  CHECK(state(10) == 2 * 8 * 4 * 6 * 2);  // heads x head_dim x state, bf16
  CHECK(state(1000) == state(10));
  const Graph g = small(spec_of(Phase::kDecode, 2, 10), small_nemotron());
  CHECK(tensor_bytes(g, "layers.0.kv.conv_state").value == 2 * (8 * 4 + 2 * 4 * 6) * 3 * 2);
  CHECK(op_named(g, "layers.0.ssm_scan").flops->value == 4.0 * 2 * 8 * 4 * 6);
}

TEST_CASE("a prompt beside decoding shares the products and has an attention of its own") {
  WorkloadSpec spec = spec_of(Phase::kMixed, 6, 100);
  spec.prefill = PromptChunk{2, 16, 32};
  const Graph g = small(spec);
  const double tokens = 6 + 2 * 16;
  CHECK(op_named(g, "layers.0.gate_up").flops->value == 2.0 * tokens * 16 * 2 * 24);
  CHECK(op_named(g, "layers.0.attention").flops->value == 4.0 * 6 * 101 * 32);
  CHECK(op_named(g, "layers.0.attention.1").flops->value ==
        4.0 * 2 * static_cast<double>(seen_one_by_one(32, 48, 0, false)) * 32);
  CHECK(tensor_bytes(g, "layers.0.kv").value == 6 * 101 * kTokenBytes);
  CHECK(tensor_bytes(g, "layers.0.prompt_kv").value == 2 * 48 * kTokenBytes);
  CHECK(op_named(g, "lm_head").flops->value == 2.0 * 8 * 16 * 30);
}

TEST_CASE("keys that belong to another phase are refused") {
  const auto refusal = [](auto change) {
    WorkloadSpec spec = spec_of(Phase::kPrefill, 1, 64);
    change(spec);
    return input_error([&] { small(spec); });
  };
  CHECK(contains(refusal([](WorkloadSpec& s) { s.steps = 2; }), "steps: found 2"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.prefill = PromptChunk{}; }), "prefill: found a prompt"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.phase = Phase::kMixed; }), "prefill: found nothing"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.phase = Phase::kDecode, s.chunk = 8; }), "chunk: found 8"));
  CHECK(contains(refusal([](WorkloadSpec& s) { s.chunk = 8, s.parallel.cp = 2; }), "parallel.cp: found 2"));
}

}  // namespace hyperoffload

// Dense decoders: every figure against a formula written from the architecture, not from the code.
#include <nlohmann/json.hpp>

#include "sim/workload/model_figures.h"
#include "test/support/paths.h"
#include "test/workload/support.h"

namespace hyperoffload {
namespace {

// Llama-3.1-8B as published.
struct Llama8B {
  const std::int64_t layers = 32, h = 4096, inter = 14336, vocab = 128256, heads = 32, kv = 8, d = 128;
  std::int64_t layer_matrices() const {
    return h * heads * d + 2 * h * kv * d + heads * d * h + 3 * h * inter;
  }
  std::int64_t parameters() const { return 2 * vocab * h + layers * (layer_matrices() + 2 * h) + h; }
};

WorkloadSpec llama_spec(Phase phase, std::int64_t batch, std::int64_t sequence) {
  WorkloadSpec spec;
  spec.model_path = source_dir() + "/configs/models/llama-3.1-8b.json";
  spec.phase = phase;
  spec.batch = batch;
  spec.sequence = sequence;
  return spec;
}

}  // namespace

TEST_CASE("Llama-3.1-8B has the published number of parameters and KV bytes") {
  // 8,030,261,248: https://huggingface.co/meta-llama/Llama-3.1-8B, safetensors metadata (8.03B on the card).
  const ModelConfig model = load_model_config(source_dir() + "/configs/models/llama-3.1-8b.json");
  const ModelFigures figures = model_figures(model, DataType::kBf16);
  CHECK(Llama8B().parameters() == 8'030'261'248);
  CHECK(figures.parameters == Llama8B().parameters());
  CHECK(figures.active_parameters == Llama8B().parameters());
  CHECK(figures.kv_bytes_per_token.value == 32 * 2 * 8 * 128 * 2);
}

TEST_CASE("prefill of Llama-3.1-8B does 2 FLOPs a weight and token, and half of the attention square") {
  const Llama8B m;
  const std::int64_t s = 4096, batch = 2;
  const Graph g = generate_trace(llama_spec(Phase::kPrefill, batch, s));
  const double tokens = static_cast<double>(batch * s);
  const double matrices = 2.0 * tokens * static_cast<double>(m.layers * m.layer_matrices());
  const double head = 2.0 * static_cast<double>(batch * m.vocab * m.h);  // the last token of each sample
  const double pairs = static_cast<double>(batch) * static_cast<double>(s) * static_cast<double>(s + 1) / 2;
  const double attention = static_cast<double>(m.layers * m.heads) * pairs * 2 * 2 * static_cast<double>(m.d);
  CHECK(total_flops(g) == Approx(matrices + head + attention).epsilon(1e-14));
}

TEST_CASE("prefill of Llama-3.1-8B moves each kernel's operands once") {
  const Llama8B m;
  const std::int64_t s = 1024, e = 2;
  const Graph g = generate_trace(llama_spec(Phase::kPrefill, 1, s));
  const std::int64_t x = s * m.h * e, q = s * m.heads * m.d * e, kv = s * m.kv * m.d * e,
                     wide = s * m.inter * e;
  const std::int64_t norm = 2 * x + m.h * e;
  const std::int64_t add = 3 * x;
  const std::int64_t qkv = x + (m.heads + 2 * m.kv) * m.d * m.h * e + q + 2 * kv;
  const std::int64_t rope = 2 * (q + kv);
  const std::int64_t append = 4 * kv;             // K and V read, and written to the cache
  const std::int64_t attention = 2 * q + 2 * kv;  // Q, K, V, O: no S x S tensor
  const std::int64_t out = q + m.heads * m.d * m.h * e + x;
  const std::int64_t gate_up = x + 2 * m.inter * m.h * e + 2 * wide;
  const std::int64_t act = 3 * wide;
  const std::int64_t down = wide + m.inter * m.h * e + x;
  const std::int64_t layer =
      2 * norm + 2 * add + qkv + rope + append + attention + out + gate_up + act + down;
  const std::int64_t embed = 4 * s + 2 * x;
  const std::int64_t head = norm + m.h * e + m.vocab * m.h * e + m.vocab * e;
  CHECK(total_hbm_bytes(g).value == embed + m.layers * layer + head);
}

TEST_CASE("prefill of Llama-3.1-8B holds its weights, writes the whole cache and names kernels in order") {
  const Graph g = generate_trace(llama_spec(Phase::kPrefill, 1, 1024));
  CHECK(bytes_of_kind(g, TensorKind::kWeight).value == 2 * Llama8B().parameters());
  CHECK(bytes_of_kind(g, TensorKind::kKv).value == 1024 * 131072);
  CHECK(bytes_of_kind(g, TensorKind::kInput).value == 1024 * 4);
  const std::vector<std::string> kernels = {"embed",     "norm", "qkv", "rope", "kv_append",
                                            "attention", "out",  "add", "norm", "gate_up",
                                            "act",       "down", "add"};
  for (std::size_t i = 0; i < kernels.size(); ++i) CHECK(g.ops()[i].kernel == kernels[i]);
  CHECK(g.ops().size() == 1 + 32 * 12 + 2);
  CHECK(op_named(g, "layers.31.down").layer == 31);
  const Op& append = op_named(g, "layers.3.kv_append");
  CHECK(append.writes.size() == 1);
  CHECK(append.reads.size() == 2);  // a pure write of the cache: K and V only are read
}

TEST_CASE("a decode step reads every weight and the whole cache, and appends in place") {
  const Llama8B m;
  const std::int64_t batch = 8, s = 32768;
  const Graph g = generate_trace(llama_spec(Phase::kDecode, batch, s));
  const std::int64_t token = 2 * m.kv * m.d * 2;
  CHECK(tensor_bytes(g, "layers.0.kv").value == batch * (s + 1) * token);
  const Op& append = op_named(g, "layers.0.kv_append");
  CHECK(append.writes.size() == 1);
  CHECK(append.reads.size() == 3);
  CHECK(append.hbm_bytes->value == 2 * batch * token);
  const Op& attention = op_named(g, "layers.0.attention");
  CHECK(attention.hbm_bytes->value == batch * ((s + 1) * token + 2 * m.heads * m.d * 2));
  CHECK(attention.flops->value == 4.0 * static_cast<double>(batch * (s + 1) * m.heads * m.d));
  const double matrices = 2.0 * static_cast<double>(batch * (m.layers * m.layer_matrices() + m.vocab * m.h));
  CHECK(total_flops(g) ==
        Approx(matrices + static_cast<double>(m.layers) * attention.flops->value).epsilon(1e-14));
}

TEST_CASE("tied embeddings are one tensor, counted once and read by the head") {
  const ModelConfig model = parse_model_config(tiny_llama(R"(, "tie_word_embeddings": true)"), "tiny.json");
  const std::int64_t layer = 8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 12 + 2 * 8;
  CHECK(model_figures(model, DataType::kBf16).parameters == 10 * 8 + 2 * layer + 8);
  WorkloadSpec spec;
  spec.sequence = 4;
  const Graph g = generate_trace(spec, model);
  CHECK(bytes_of_kind(g, TensorKind::kWeight).value == 2 * (10 * 8 + 2 * layer + 8));
  const Op& head = op_named(g, "lm_head");
  bool reads_table = false;
  for (TensorId t : head.reads) reads_table |= g.tensor(t).name == "embed_tokens";
  CHECK(reads_table);
}

TEST_CASE("the trace's meta says what it stands for") {
  const Graph g = generate_trace(llama_spec(Phase::kDecode, 8, 100));
  const auto meta = nlohmann::json::parse(g.meta_json());
  CHECK(meta["model"]["parameters"] == Llama8B().parameters());
  CHECK(meta["model"]["kv_bytes_per_token"] == 131072);
  CHECK(meta["tokens"] == 8);
  CHECK(meta["samples"] == 8);
  CHECK(meta["phase"] == "decode");
}

TEST_CASE("a sequence beyond the model's positions is refused in one sentence") {
  const std::string message = input_error([] { generate_trace(llama_spec(Phase::kDecode, 1, 131072)); });
  CHECK(contains(message, "sequence: found 131073 tokens in the end"));
  CHECK(contains(message, "max_position_embeddings"));
}

}  // namespace hyperoffload

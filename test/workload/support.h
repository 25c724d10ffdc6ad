// What the workload tests share: where published configs lie, tiny models, sums over a graph.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "sim/model/error.h"
#include "sim/model/graph.h"
#include "sim/workload/workload.h"
#include "test/support/catch.h"
#include "test/support/paths.h"

namespace hyperoffload {

// The path of a published config, or nothing (with a warning) where the shared data is absent.
// HYPEROFFLOAD_SHARED_DATA names another place for it.
inline std::optional<std::string> published_config(const std::string& name) {
  const std::string path = shared_data_dir() + "/hf_configs/" + name;
  if (std::filesystem::exists(path)) return path;
  WARN("skipped: " << path << " is absent");
  return std::nullopt;
}

// A small dense model: 2 layers, hidden 8, 4 heads of 2 over 2 KV heads, intermediate 12, vocabulary 10.
inline std::string tiny_llama(const std::string& more = "") {
  return R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 12, "vocab_size": 10, "max_position_embeddings": 64,
    "hidden_act": "silu")" +
         more + "}";
}

template <class Body>
std::string input_error(Body body) {
  try {
    body();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no InputError";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline double total_flops(const Graph& g) {
  double sum = 0;
  for (const Op& op : g.ops()) sum += op.flops.value_or(Flops(0)).value;
  return sum;
}

inline Bytes total_hbm_bytes(const Graph& g) {
  Bytes sum;
  for (const Op& op : g.ops()) sum += op.hbm_bytes.value_or(Bytes(0));
  return sum;
}

inline Bytes bytes_of_kind(const Graph& g, TensorKind kind) {
  Bytes sum;
  for (const Tensor& t : g.tensors())
    if (t.kind == kind) sum += t.bytes;
  return sum;
}

inline const Op& op_named(const Graph& g, const std::string& name) {
  for (const Op& op : g.ops())
    if (op.name == name) return op;
  FAIL("no op " << name);
  return g.ops().front();
}

inline Bytes tensor_bytes(const Graph& g, const std::string& name) {
  for (const Tensor& t : g.tensors())
    if (t.name == name) return t.bytes;
  FAIL("no tensor " << name);
  return Bytes(0);
}

}  // namespace hyperoffload

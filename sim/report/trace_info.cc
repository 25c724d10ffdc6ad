#include "sim/report/trace_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/model/decimal.h"
#include "sim/model/json_reader.h"

namespace hyperoffload {
namespace {

__extension__ typedef __int128 Wide;  // sums of sizes near 2^63 come back down exactly

// The bytes each step adds to what lives, and what has gone before the next.
struct LifeChanges {
  std::vector<Wide> born, gone;  // at a step; after a step
};

LifeChanges life_changes(const Graph& graph) {
  const std::size_t ops = graph.ops().size();
  LifeChanges changes{std::vector<Wide>(ops), std::vector<Wide>(ops)};
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId t(i);
    const auto accesses = graph.accesses(t);
    const Tensor& tensor = graph.tensor(t);
    if (!tensor.persistent && accesses.empty()) continue;
    const bool from_start = tensor.persistent || graph.is_input(t);
    changes.born[from_start ? 0 : accesses.front().op.index()] += tensor.bytes.value;
    if (!tensor.persistent) changes.gone[accesses.back().op.index()] += tensor.bytes.value;
  }
  return changes;
}

void find_peak(const Graph& graph, TraceInfo& info) {
  const LifeChanges changes = life_changes(graph);
  Wide live = 0, peak = -1;
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    live += changes.born[i];
    if (const Wide here = live + graph.ops()[i].workspace.value; here > peak) {
      peak = here;
      info.peak_step = OpId(i);
    }
    live -= changes.gone[i];
  }
  info.peak_live = Bytes(static_cast<std::int64_t>(std::min<Wide>(peak, Bytes::max().value)));
  info.peak_op = graph.op(info.peak_step).name;
}

std::string number_of(const nlohmann::json& model, const char* key) {
  return model.contains(key) && model[key].is_number() ? model[key].dump() : "";
}

void copy_model(const Graph& graph, TraceInfo& info) {
  const nlohmann::json meta = nlohmann::json::parse(graph.meta_json(), nullptr, false);
  if (!meta.is_object() || !meta.contains("model") || !meta["model"].is_object()) return;
  info.model_parameters = number_of(meta["model"], "parameters");
  info.model_kv_bytes_per_token = number_of(meta["model"], "kv_bytes_per_token");
}

std::string readable(Bytes bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes.value)
                   : fmt::format("{:.2f} {} ({} B)", value, units[unit], bytes.value);
}

}  // namespace

TraceInfo trace_info(const Graph& graph) {
  TraceInfo info;
  info.name = graph.name();
  info.ops = graph.ops().size();
  info.tensors = graph.tensors().size();
  long double flops = 0, microseconds = 0;
  for (const Op& op : graph.ops()) {
    if (op.flops) flops += op.flops->value;
    if (op.hbm_bytes) info.hbm_bytes += *op.hbm_bytes;
    if (!op.duration) continue;
    microseconds += op.duration->value * 1e6L;
    ++info.timed_ops;
  }
  info.flops = Flops(static_cast<double>(flops));
  info.duration_us = static_cast<double>(microseconds);
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    info.bytes_by_kind[static_cast<std::size_t>(tensor.kind)] += tensor.bytes;
    info.accesses += graph.accesses(TensorId(i)).size();
  }
  for (std::size_t e = 0; e < graph.engines().size(); ++e)
    info.engines.emplace_back(graph.engines()[e], graph.engine_ops(EngineId(e)).size());
  find_peak(graph, info);
  copy_model(graph, info);
  return info;
}

std::string trace_info_json(const TraceInfo& info) {
  std::string out = "{\"trace\": ";
  append_json_string(out, info.name);
  out += fmt::format(",\n \"ops\": {},\n \"tensors\": {},\n \"accesses\": {}", info.ops, info.tensors,
                     info.accesses);
  out += ",\n \"flops\": " + shortest_decimal(info.flops.value);
  out += fmt::format(",\n \"hbm_bytes\": {}", info.hbm_bytes.value);
  out += ",\n \"duration_us\": " + shortest_decimal(info.duration_us);
  out += fmt::format(",\n \"timed_ops\": {},\n \"bytes_by_kind\": {{", info.timed_ops);
  for (TensorKind kind : kAllTensorKinds)
    out += fmt::format("{}\"{}\": {}", kind == kAllTensorKinds[0] ? "" : ", ", to_string(kind),
                       info.bytes_by_kind[static_cast<std::size_t>(kind)].value);
  out += "},\n \"engines\": {";
  for (std::size_t e = 0; e < info.engines.size(); ++e) {
    if (e > 0) out += ", ";
    append_json_string(out, info.engines[e].first);
    out += fmt::format(": {}", info.engines[e].second);
  }
  out += fmt::format("}},\n \"peak_live_bytes\": {},\n \"peak_live_step\": {},\n \"peak_live_op\": ",
                     info.peak_live.value, info.peak_step.value);
  append_json_string(out, info.peak_op);
  std::string model;
  if (!info.model_parameters.empty()) model = "\"parameters\": " + info.model_parameters;
  if (!info.model_kv_bytes_per_token.empty())
    model += (model.empty() ? "" : ", ") + ("\"kv_bytes_per_token\": " + info.model_kv_bytes_per_token);
  if (!model.empty()) out += ",\n \"model\": {" + model + "}";
  return out + "}\n";
}

std::string trace_info_table(const TraceInfo& info) {
  std::string out;
  const auto row = [&](const char* label, const std::string& value) {
    out += fmt::format("{:<16}{}\n", label, value);
  };
  row("trace", info.name);
  row("ops", std::to_string(info.ops));
  for (const auto& [engine, ops] : info.engines) row("  engine", fmt::format("{}: {}", engine, ops));
  row("tensors", fmt::format("{}, {} accesses", info.tensors, info.accesses));
  for (TensorKind kind : kAllTensorKinds)
    if (const Bytes bytes = info.bytes_by_kind[static_cast<std::size_t>(kind)]; bytes > Bytes(0))
      row("  bytes", fmt::format("{}: {}", to_string(kind), readable(bytes)));
  row("FLOPs", shortest_decimal(info.flops.value));
  row("HBM traffic", readable(info.hbm_bytes));
  row("duration",
      fmt::format("{} us over {} of {} ops", shortest_decimal(info.duration_us), info.timed_ops, info.ops));
  row("live bytes peak",
      fmt::format("{} at step {}, {}", readable(info.peak_live), info.peak_step.value, info.peak_op));
  if (!info.model_parameters.empty()) row("parameters", info.model_parameters);
  if (!info.model_kv_bytes_per_token.empty()) row("KV per token", info.model_kv_bytes_per_token + " B");
  return out;
}

}  // namespace hyperoffload

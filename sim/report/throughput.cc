#include "sim/report/throughput.h"

#include <nlohmann/json.hpp>

namespace hyperoffload {
namespace {

std::optional<double> positive(const nlohmann::json& meta, const char* key) {
  const auto it = meta.find(key);
  if (it == meta.end() || !it->is_number()) return std::nullopt;
  const double value = it->get<double>();
  return value > 0 ? std::optional(value) : std::nullopt;
}

double npu_flops(const Graph& graph) {
  double flops = 0;
  for (const Op& op : graph.ops())
    if (op.memory == Tier::kHbm && op.flops) flops += op.flops->value;
  return flops;
}

}  // namespace

Throughput throughput_of(const Graph& graph, const Hardware& hardware, Seconds iteration) {
  Throughput result;
  if (iteration <= Seconds(0)) return result;
  if (const double flops = npu_flops(graph); flops > 0 && hardware.compute > FlopsPerSecond(0))
    result.model_flops_utilisation = (Flops(flops) / hardware.compute).value / iteration.value;

  const nlohmann::json meta = nlohmann::json::parse(graph.meta_json(), nullptr, false);
  if (!meta.is_object()) return result;
  const auto phase_at = meta.find("phase");
  const std::string phase =
      phase_at != meta.end() && phase_at->is_string() ? phase_at->get<std::string>() : "";
  const auto batch = positive(meta, "batch"), sequence = positive(meta, "sequence");

  const double steps = positive(meta, "steps").value_or(1);  // tokens a decoding sample gets
  std::optional<double> tokens = positive(meta, "tokens");
  if (!tokens && batch && phase == "decode") tokens = *batch * steps;
  if (!tokens && batch && sequence && (phase == "train" || phase == "prefill")) tokens = *batch * *sequence;
  std::optional<double> samples = positive(meta, "samples");
  if (!samples && (phase == "train" || phase == "prefill")) samples = batch;

  if (tokens) result.tokens_per_s = *tokens / iteration.value;
  if (samples && phase != "decode" && phase != "mixed") result.samples_per_s = *samples / iteration.value;
  if (phase == "prefill") result.time_to_first_token = iteration;
  if (phase == "decode" || phase == "mixed") result.time_per_output_token = Seconds(iteration.value / steps);
  return result;
}

}  // namespace hyperoffload

#include "sim/workload/workload.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/model/error.h"
#include "sim/workload/check_workload.h"
#include "sim/workload/generators.h"
#include "sim/workload/limits.h"
#include "sim/workload/model_figures.h"

namespace hyperoffload {
namespace {

std::string meta_of(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place,
                    double model_flops) {
  const ModelFigures figures = model_figures(model, spec.kv());
  nlohmann::ordered_json meta;
  meta["generator"] = "hyperoffload trace generate";
  auto& m = meta["model"];
  m["name"] = model.name;
  m["model_type"] = model.model_type;
  m["parameters"] = figures.parameters;
  m["active_parameters"] = figures.active_parameters;
  m["kv_bytes_per_token"] = figures.kv_bytes_per_token.value;
  m["kv_bytes_per_token_far"] = figures.kv_bytes_per_token_far.value;
  m["state_bytes_per_sample"] = figures.state_bytes_per_sample.value;
  m["layers"] = model.layers.size();
  if (spec.mtp > 0) m["mtp"] = spec.mtp;
  if (!model.left_out.empty()) m["left_out"] = model.left_out;
  meta["phase"] = to_string(spec.phase);
  meta["batch"] = spec.batch;
  meta["sequence"] = spec.sequence;
  meta["samples"] = spec.batch + (spec.prefill ? spec.prefill->batch : 0);
  const bool steps = spec.phase == Phase::kDecode || spec.phase == Phase::kMixed;
  std::int64_t tokens = spec.batch * (steps ? spec.steps : spec.sequence);
  if (spec.prefill) tokens += spec.prefill->batch * spec.prefill->tokens * spec.steps;
  meta["tokens"] = tokens;
  if (steps) meta["steps"] = spec.steps;
  meta["model_flops"] = model_flops;  // of this rank: what the model asks for, nothing done twice
  meta["dtype"] = to_string(spec.dtype);
  meta["weight_dtype"] = spec.published_weights ? "published" : to_string(spec.weights());
  meta["kv_dtype"] = to_string(spec.kv());
  meta["detail"] = to_string(spec.detail);
  meta["parallel"] = {{"tp", place.tp}, {"cp", place.cp},   {"dp", place.dp},     {"pp", place.pp},
                      {"ep", place.ep}, {"etp", place.etp}, {"rank", place.rank}, {"ranks", place.world}};
  return meta.dump();
}

void check(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place) {
  check_workload(spec, model, place);
  check_value_sizes(spec, model);
  check_trace_size(spec, model, place);
}

}  // namespace

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kTrain:
      return "train";
    case Phase::kPrefill:
      return "prefill";
    case Phase::kDecode:
      return "decode";
    case Phase::kMixed:
      return "mixed";
  }
  return "";
}

const char* to_string(Detail detail) { return detail == Detail::kKernel ? "kernel" : "layer"; }

const char* to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone:
      return "none";
    case Recompute::kSelective:
      return "selective";
    case Recompute::kFull:
      return "full";
    case Recompute::kLayers:
      return "layers";
  }
  return "";
}

const char* to_string(Schedule schedule) { return schedule == Schedule::k1F1B ? "1f1b" : "gpipe"; }
const char* to_string(Routing routing) { return routing == Routing::kBalanced ? "balanced" : "random"; }

Graph generate_trace(const WorkloadSpec& spec) {
  return generate_trace(spec, load_model_config(spec.model_path));
}

void check_workload(const WorkloadSpec& spec) {
  check(spec, load_model_config(spec.model_path), place_of(spec.parallel, spec.at("parallel")));
}

Graph generate_trace(const WorkloadSpec& spec, const ModelConfig& model) {
  const RankPlace place = place_of(spec.parallel, spec.at("parallel"));
  check(spec, model, place);
  TraceWriter writer(spec, place);
  if (spec.phase == Phase::kTrain)
    generate_training(spec, model, place, writer);
  else
    generate_inference(spec, model, place, writer);
  return writer.finish(spec.name.empty() ? model.name + "-" + to_string(spec.phase) : spec.name,
                       meta_of(spec, model, place, writer.model_flops()));
}

}  // namespace hyperoffload

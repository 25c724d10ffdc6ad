#include "sim/workload/workload.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/model/error.h"
#include "sim/workload/model_figures.h"
#include "sim/workload/program.h"
#include "sim/workload/trace_writer.h"

namespace hyperoffload {
namespace {

std::string at(const WorkloadSpec& spec, const std::string& key) {
  return spec.source.empty() ? key : spec.source + ": " + key;
}

void check_spec(const WorkloadSpec& spec, const ModelConfig& model) {
  if (spec.batch < 1)
    throw InputError(at(spec, "batch"), std::to_string(spec.batch), "a whole number, 1 or more");
  if (spec.sequence < 1)
    throw InputError(at(spec, "sequence"), std::to_string(spec.sequence), "a whole number, 1 or more");
  const std::int64_t last = spec.sequence + (spec.phase == Phase::kDecode ? 1 : 0);
  if (last > model.max_positions)
    throw InputError(at(spec, "sequence"), fmt::format("{} tokens in the end", last),
                     fmt::format("at most {}: the model's max_position_embeddings", model.max_positions));
}

std::string meta_of(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place) {
  const ModelFigures figures = model_figures(model, spec.kv());
  nlohmann::ordered_json meta;
  meta["generator"] = "hyperoffload trace generate";
  auto& m = meta["model"];
  m["name"] = model.name;
  m["model_type"] = model.model_type;
  m["parameters"] = figures.parameters;
  m["active_parameters"] = figures.active_parameters;
  m["kv_bytes_per_token"] = figures.kv_bytes_per_token.value;
  m["layers"] = model.layers.size();
  meta["phase"] = to_string(spec.phase);
  meta["batch"] = spec.batch;
  meta["sequence"] = spec.sequence;
  meta["samples"] = spec.batch;
  meta["tokens"] = spec.batch * (spec.phase == Phase::kDecode ? 1 : spec.sequence);
  meta["dtype"] = to_string(spec.dtype);
  meta["weight_dtype"] = spec.published_weights ? "published" : to_string(spec.weights());
  meta["kv_dtype"] = to_string(spec.kv());
  meta["detail"] = spec.detail == Detail::kKernel ? "kernel" : "layer";
  meta["parallel"] = {{"tp", place.tp}, {"cp", place.cp},     {"dp", place.dp},      {"pp", place.pp},
                      {"ep", place.ep}, {"rank", place.rank}, {"ranks", place.world}};
  return meta.dump();
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
  }
  return "";
}

Graph generate_trace(const WorkloadSpec& spec) {
  return generate_trace(spec, load_model_config(spec.model_path));
}

Graph generate_trace(const WorkloadSpec& spec, const ModelConfig& model) {
  check_spec(spec, model);
  if (spec.phase == Phase::kTrain) throw InputError(at(spec, "phase"), "train", "prefill or decode");
  const RankPlace place = place_of(spec.parallel, at(spec, "parallel"));
  Pass pass;
  pass.phase = spec.phase;
  pass.sequences = spec.batch;
  const bool decode = spec.phase == Phase::kDecode;
  pass.new_tokens = decode ? 1 : spec.sequence;
  pass.cached = decode ? spec.sequence : 0;
  pass.capacity = pass.cached + pass.new_tokens;
  const ProgramContext context{model, spec, place, pass};

  TraceWriter writer;
  const std::string phase = to_string(spec.phase);
  const Program embedding = embedding_program(context);
  TensorId h = writer.tensor("tokens", embedding.values[static_cast<std::size_t>(embedding.input)].bytes,
                             TensorKind::kInput);
  h = writer.forward(embedding, "", -1, phase, h);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    h = writer.forward(layer_program(context, model.layers[i]), fmt::format("layers.{}.", i),
                       static_cast<int>(i), phase, h);
  writer.forward(head_program(context), "", -1, phase, h);
  return writer.finish(spec.name.empty() ? model.name + "-" + phase : spec.name, meta_of(spec, model, place),
                       spec.source);
}

}  // namespace hyperoffload

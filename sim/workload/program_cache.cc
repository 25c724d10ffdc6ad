#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/generators.h"

namespace hyperoffload {

Stage stage_of(const ModelConfig& model, const RankPlace& place, int chunks, int chunk) {
  const int stages = place.pp * chunks, index = chunk * place.pp + place.pp_rank;
  return {even_share(static_cast<std::int64_t>(model.layers.size()), stages, index), index == 0,
          index == stages - 1};
}

Bytes boundary_bytes(const ProgramContext& c) {
  const std::int64_t streams = c.model.streams > 0 ? c.model.streams : 1;
  return bytes_of(c.resting_tokens() * c.model.hidden * streams, c.spec.dtype);
}

ProgramCache::ProgramCache(const ModelConfig& model, const WorkloadSpec& spec, const RankPlace& place)
    : context_{model, spec, place, {}} {
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto same = std::find_if(kinds.begin(), kinds.end(),
                                   [&](std::size_t k) { return model.layers[k] == model.layers[i]; });
    kind_of_.push_back(same == kinds.end() ? i : *same);
    if (same == kinds.end()) kinds.push_back(i);
  }
}

void ProgramCache::set_pass(Pass pass) {
  context_.pass = std::move(pass);
  programs_.clear();
}

const Program& ProgramCache::embedding() {
  auto& weights = weights_["embedding"];
  if (!weights) weights = part_weights(context_, embedding_weights(context_.model));
  const auto [it, fresh] = programs_.try_emplace("embedding");
  if (fresh) it->second = embedding_program(context_, weights);
  return it->second;
}

const Program& ProgramCache::layer(std::int64_t index) {
  const std::size_t kind = kind_of_[static_cast<std::size_t>(index)];
  const LayerSpec& layer = context_.model.layers[kind];
  auto& weights = weights_[fmt::format("layer.{}", kind)];
  if (!weights) weights = part_weights(context_, layer_weights(context_.model, layer));
  const bool own = depends_on_layer(context_, layer);
  const auto [it, fresh] =
      programs_.try_emplace(fmt::format("layer.{}", own ? index : static_cast<std::int64_t>(kind)));
  if (fresh) it->second = layer_program(context_, layer, index, weights);
  return it->second;
}

const Program& ProgramCache::head() {
  auto& weights = weights_["head"];
  if (!weights) weights = part_weights(context_, head_part_weights(context_.model));
  const auto [it, fresh] = programs_.try_emplace("head");
  if (fresh) it->second = head_program(context_, weights);
  return it->second;
}

const Program& ProgramCache::mtp() {
  auto& weights = weights_["mtp"];
  if (!weights) weights = part_weights(context_, mtp_part_weights(context_.model));
  const auto [it, fresh] = programs_.try_emplace("mtp");
  if (fresh) it->second = mtp_program(context_, weights);
  return it->second;
}

}  // namespace hyperoffload

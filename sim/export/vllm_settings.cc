#include "sim/export/vllm_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/model/decimal.h"
#include "sim/model/json_reader.h"

namespace hyperoffload {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Pattern {
  int group = 0, offload = 0;
};

class VllmSettings {
 public:
  VllmSettings(const Plan& plan, const Graph& graph) : plan_(plan), graph_(graph) {}

  Exported write() {
    look_at_layers();
    look_at_actions();
    std::string text = "{";
    const auto add = [&](const std::string& key, const std::string& value) {
      text += fmt::format("{}\"{}\": {}", text.size() > 1 ? ", " : "", key, value);
    };
    const std::optional<Pattern> pattern = find_pattern();
    if (loaded_.empty()) {
      add("cpu_offload_gb", "0");
    } else if (pattern) {
      add("offload_backend", "\"prefetch\"");
      add("offload_group_size", std::to_string(pattern->group));
      add("offload_num_in_group", std::to_string(pattern->offload));
      add("offload_prefetch_step", std::to_string(find_step()));
    } else {
      add("cpu_offload_gb", shortest_decimal(static_cast<double>(loaded_bytes_.value) / kGiB));
      remarks_.push_back(
          "the layers whose weights are loaded form no pattern of groups: cpu_offload_gb says how much of "
          "the weights is on the host, not which, and copies nothing ahead");
    }
    say_what_is_lost();
    add("lost", lost());
    return {text + "}\n", remarks_};
  }

 private:
  // A weight belongs to the layer of its first reader.
  int layer_of(TensorId t) const {
    for (const Access& access : graph_.accesses(t))
      if (graph_.op(access.op).layer >= 0) return graph_.op(access.op).layer;
    return -1;
  }

  void look_at_layers() {
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      if (graph_.tensors()[i].kind != TensorKind::kWeight) continue;
      const int layer = layer_of(TensorId(i));
      if (layer >= 0) layer_bytes_[layer] += graph_.tensors()[i].bytes;
    }
    for (const Op& op : graph_.ops()) layers_ = std::max(layers_, op.layer + 1);
  }

  void look_at_actions() {
    std::set<TensorId> counted;
    for (const Action& action : plan_.actions) {
      const Tensor& tensor = graph_.tensor(action.tensor);
      if (tensor.kind != TensorKind::kWeight) {
        ++others_[to_string(tensor.kind)];
        continue;
      }
      if (action.kind != ActionKind::kPrefetch) continue;
      const int layer = layer_of(action.tensor);
      if (layer < 0) ++outside_;
      pieces_ += action.bytes() != tensor.bytes;
      if (!counted.insert(action.tensor).second) continue;
      loaded_bytes_ += tensor.bytes;
      if (layer < 0) continue;
      loaded_[layer] += tensor.bytes;
      const int anchor = action.after_op.is_none() ? -1 : graph_.op(action.after_op).layer;
      anchors_[layer].push_back(anchor);
    }
  }

  std::optional<Pattern> find_pattern() const {
    std::vector<bool> offloaded(static_cast<std::size_t>(layers_));
    for (const auto& [layer, bytes] : loaded_) offloaded[static_cast<std::size_t>(layer)] = true;
    for (int group = 1; group <= layers_; ++group)
      for (int offload = 1; offload <= group; ++offload) {
        bool fits = true;
        for (int layer = 0; layer < layers_ && fits; ++layer)
          fits = offloaded[static_cast<std::size_t>(layer)] == (layer % group >= group - offload);
        if (fits) return Pattern{group, offload};
      }
    return std::nullopt;
  }

  // How many offloaded layers ahead the copies start: of the steps that the anchors show, the most frequent,
  // the least of them.
  int find_step() {
    std::vector<int> order;
    for (const auto& [layer, _] : loaded_) order.push_back(layer);
    const int count = static_cast<int>(order.size());
    std::map<int, int> votes;
    for (int place = 0; place < count; ++place)
      for (const int anchor : anchors_[order[static_cast<std::size_t>(place)]]) {
        int from = place - 1;  // the offloaded layer that has run, counted back around the iteration's start
        while (from >= 0 && order[static_cast<std::size_t>(from)] > anchor) --from;
        ++votes[place - from];
      }
    int step = 1, most = 0, all = 0;
    for (const auto& [candidate, number] : votes) {
      all += number;
      if (number > most) {
        most = number;
        step = candidate;
      }
    }
    if (most < all)
      remarks_.push_back(fmt::format("{} of {} copies start elsewhere than {} offloaded layer{} ahead",
                                     all - most, all, step, step == 1 ? "" : "s"));
    return step;
  }

  void say_what_is_lost() {
    std::size_t partly = 0;
    for (const auto& [layer, bytes] : loaded_) partly += bytes < layer_bytes_[layer];
    if (partly > 0)
      remarks_.push_back(fmt::format("{} layers are loaded in part: vLLM offloads whole ones", partly));
    if (pieces_ > 0) remarks_.push_back(fmt::format("{} copies move a piece of a weight", pieces_));
    if (outside_ > 0)
      remarks_.push_back(
          fmt::format("{} copies of weights outside of the layers (embedding, head)", outside_));
    for (const auto& [kind, count] : others_)
      remarks_.push_back(
          fmt::format("{} actions on tensors of kind {}: vLLM's weight offload knows none", count, kind));
  }

  std::string lost() const {
    std::string text = "[";
    for (std::size_t i = 0; i < remarks_.size(); ++i) {
      if (i > 0) text += ", ";
      append_json_string(text, remarks_[i]);
    }
    return text + "]";
  }

  const Plan& plan_;
  const Graph& graph_;
  int layers_ = 0;
  std::map<int, Bytes> layer_bytes_, loaded_;  // of weights, by layer
  std::map<int, std::vector<int>> anchors_;    // of the loads, by layer: the layer they start behind
  std::map<std::string, std::size_t> others_;  // actions by kind
  Bytes loaded_bytes_;
  std::size_t pieces_ = 0, outside_ = 0;
  std::vector<std::string> remarks_;
};

}  // namespace

Exported plan_to_vllm_settings(const Plan& plan, const Graph& graph) {
  return VllmSettings(plan, graph).write();
}

}  // namespace hyperoffload

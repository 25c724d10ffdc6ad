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

// A copy of a layer's weight: behind which op it starts (none: at the iteration's start), for which op.
struct Load {
  OpId after, use;
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
      if (layer >= 0) look_at_load(action);
      if (!counted.insert(action.tensor).second) continue;
      loaded_bytes_ += tensor.bytes;
      if (layer >= 0) loaded_[layer] += tensor.bytes;
    }
  }

  void look_at_load(const Action& action) {
    const auto accesses = graph_.accesses(action.tensor);
    OpId use = action.before_op;
    for (std::size_t i = 0; i < accesses.size() && use.is_none(); ++i)
      if (action.after_op.is_none() || action.after_op < accesses[i].op) use = accesses[i].op;
    if (use.is_none()) use = accesses.front().op;  // of the next iteration
    (action.scope == IterationScope::kFirst ? first_loads_ : loads_).push_back({action.after_op, use});
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

  // The last op of each run of an offloaded layer, in program order; neighbours of the same layer are one.
  std::vector<OpId> ends_of_runs() const {
    std::vector<OpId> ends;
    int before = -1;
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
      const int layer = graph_.ops()[i].layer;
      if (loaded_.count(layer) == 0) continue;
      if (layer != before) ends.emplace_back();
      before = layer;
      ends.back() = OpId(i);
    }
    return ends;
  }

  // How many offloaded layers ahead the copies start: of the steps that they show, the most frequent, the
  // least of them. A plan's copies of the first iteration alone, which has no layers before it, count only
  // where there are no others.
  int find_step() {
    const std::vector<OpId> ends = ends_of_runs();
    const auto runs_before = [&](auto position) { return static_cast<int>(position - ends.begin()); };
    std::map<int, int> votes;
    for (const Load& load : loads_.empty() ? first_loads_ : loads_) {
      // The copy starts behind the run `from` (-1: that of the iteration before), and is for the run `to`.
      const int from =
          load.after.is_none() ? -1 : runs_before(std::upper_bound(ends.begin(), ends.end(), load.after)) - 1;
      const int to = runs_before(std::lower_bound(ends.begin(), ends.end(), load.use));
      ++votes[to > from ? to - from : to - from + static_cast<int>(ends.size())];
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
  std::vector<Load> loads_, first_loads_;      // of every or later iterations; of the first alone
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

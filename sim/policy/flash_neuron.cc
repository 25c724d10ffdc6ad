#include "sim/policy/flash_neuron.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"
#include "sim/policy/absences.h"
#include "sim/policy/hbm_profile.h"

namespace hyperoffload {
namespace {

struct Offloaded {
  TensorId tensor;
  int access = 0;  // the last in forward
  OpId from, use;  // its op, and that of the next access
};

// Where forward ends and backward begins.
OpId turning_point(const Graph& graph) {
  const auto& ops = graph.ops();
  const auto first =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.phase == "backward"; });
  if (first != ops.end()) return OpId(static_cast<std::size_t>(first - ops.begin()));
  const std::vector<Bytes> live = resident_profile(graph);
  return OpId(static_cast<std::size_t>(std::max_element(live.begin(), live.end()) - live.begin()));
}

class FlashNeuron {
 public:
  FlashNeuron(const Graph& graph, Bytes capacity) : graph_(graph), capacity_(capacity) {
    backward_ = turning_point(graph);
    for (const Tensor& tensor : graph.tensors())
      if (tensor.persistent) weights_ += tensor.bytes;
    for (const Op& op : graph.ops()) largest_set_ = std::max(largest_set_, working_set(op));
  }

  std::vector<Absence> choose(const std::vector<Bytes>& profile) {
    select();
    return place_loads(profile);
  }

 private:
  // Of one op, beside the weights.
  Bytes working_set(const Op& op) const {
    if (op.memory == Tier::kPool) return Bytes(0);
    Bytes sum = op.workspace;
    const auto add = [&](TensorId t) {
      if (!graph_.tensor(t).persistent) sum += graph_.tensor(t).bytes;
    };
    for (TensorId t : op.reads) add(t);
    for (TensorId t : op.writes)
      if (!std::binary_search(op.reads.begin(), op.reads.end(), t)) add(t);
    return sum;
  }

  std::vector<Offloaded> candidates() const {
    std::vector<Offloaded> all;
    for (const Stretch& s : stretches(graph_)) {
      if (s.wraps || graph_.tensor(s.tensor).persistent || s.from >= backward_ || s.to < backward_) continue;
      all.push_back({s.tensor, s.access, s.from, s.to});
    }
    // In the order they are made.
    const auto made = [&](const Offloaded& o) {
      return std::pair(graph_.accesses(o.tensor).front().op, o.tensor);
    };
    std::sort(all.begin(), all.end(),
              [&](const Offloaded& a, const Offloaded& b) { return made(a) < made(b); });
    return all;
  }

  void select() {
    const Bytes room = capacity_ - weights_ - largest_set_;
    if (room <= Bytes(0))
      throw InfeasibleError(fmt::format(
          "flash_neuron keeps all weights ({} B) and needs room for the largest working set ({} B): "
          "short of {} B of HBM",
          weights_.value, largest_set_.value, (Bytes(1) - room).value));
    const std::vector<Offloaded> all = candidates();
    Bytes kept;
    for (const Offloaded& o : all) kept += graph_.tensor(o.tensor).bytes;
    for (const Offloaded& o : all) {
      if (kept < room) break;
      kept -= graph_.tensor(o.tensor).bytes;
      chosen_.push_back(o);
    }
    if (kept > room)
      throw InfeasibleError(fmt::format(
          "flash_neuron offloads everything between forward and backward and is still short of {} B of HBM",
          (kept - room).value));
  }

  // Walks through backward with the bytes that are in HBM; loads wait for room in the order of need.
  std::vector<Absence> place_loads(std::vector<Bytes> taken) {
    std::sort(chosen_.begin(), chosen_.end(), [](const Offloaded& a, const Offloaded& b) {
      return std::pair(a.use, a.tensor) < std::pair(b.use, b.tensor);
    });
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (graph_.ops()[i].memory == Tier::kHbm) taken[i] -= graph_.ops()[i].workspace;
    std::vector<Absence> absences;
    Bytes away;  // of what is offloaded and not back
    for (const Offloaded& o : chosen_) away += graph_.tensor(o.tensor).bytes;
    std::size_t next = 0;
    for (std::size_t i = backward_.index(); i < taken.size() && next < chosen_.size(); ++i) {
      const auto load_behind = [&](OpId after) {
        const Offloaded& o = chosen_[next++];
        away -= graph_.tensor(o.tensor).bytes;
        absences.push_back({o.tensor, o.access, after});
      };
      while (next < chosen_.size() && chosen_[next].use.index() <= i)
        load_behind(load_point(graph_, chosen_[next].use));
      while (next < chosen_.size() &&
             taken[i] - away + graph_.tensor(chosen_[next].tensor).bytes + largest_set_ <= capacity_)
        load_behind(OpId(i));
    }
    return absences;
  }

  const Graph& graph_;
  const Bytes capacity_;
  OpId backward_;
  Bytes weights_, largest_set_;
  std::vector<Offloaded> chosen_;
};

}  // namespace

StaticPlan flash_neuron(const Graph& graph, const Hardware& hardware, int iterations) {
  StaticPlan made;
  made.plan = fit_absences(graph, iterations, [&](const std::vector<Bytes>& profile) {
    return FlashNeuron(graph, hardware.hbm_usable()).choose(profile);
  });
  return made;
}

}  // namespace hyperoffload

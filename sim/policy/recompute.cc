#include "sim/policy/recompute.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/model/graph_spec.h"
#include "sim/policy/absences.h"
#include "sim/policy/fewest.h"
#include "sim/policy/phases.h"

namespace hyperoffload {
namespace {

struct Segment {
  int layer = -1;
  std::vector<OpId> ops;       // its forward ops, in program order
  std::vector<OpId> again;     // of them, those to repeat
  std::set<TensorId> dropped;  // what backward ops will read copies of
  OpId before;                 // the repeated ops stand in front of this one
};

class Segments {
 public:
  explicit Segments(const Graph& graph) : graph_(graph), segment_(graph.ops().size(), -1) {
    group_ops();
    for (Segment& segment : found_) settle(segment);
    std::erase_if(found_, [](const Segment& s) { return s.again.empty(); });
    for (const Segment& s : found_)
      if (std::find(layers_.begin(), layers_.end(), s.layer) == layers_.end()) layers_.push_back(s.layer);
  }

  int layers() const { return static_cast<int>(layers_.size()); }

  // Those of the first `layers` layers.
  std::vector<Segment> first(int layers) const {
    return of_layers([&](std::int64_t place) { return place < layers; });
  }
  // Those of `layers` layers, evenly spread.
  std::vector<Segment> spread(std::int64_t layers) const {
    const auto all = static_cast<std::int64_t>(layers_.size());
    return of_layers([&](std::int64_t place) { return (place + 1) * layers / all > place * layers / all; });
  }

 private:
  template <class Wanted>
  std::vector<Segment> of_layers(const Wanted& wanted) const {
    std::vector<Segment> some;
    for (const Segment& s : found_)
      if (wanted(std::find(layers_.begin(), layers_.end(), s.layer) - layers_.begin())) some.push_back(s);
    return some;
  }

  bool candidate(OpId id) const {
    const Op& op = graph_.op(id);
    return runs_forward(op) && op.layer >= 0 && op.memory == Tier::kHbm;
  }

  // Joins a layer's forward ops that access a tensor which one of them writes (union-find over ops).
  void group_ops() {
    std::vector<std::size_t> parent(graph_.ops().size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
      if (graph_.tensors()[t].persistent || graph_.tensors()[t].kind == TensorKind::kInput) continue;
      std::map<int, std::size_t> writer;  // by layer: one that writes it
      for (const Access& a : graph_.accesses(TensorId(t)))
        if (a.writes && candidate(a.op)) writer.emplace(graph_.op(a.op).layer, a.op.index());
      for (const Access& a : graph_.accesses(TensorId(t)))
        if (const auto w = writer.find(graph_.op(a.op).layer); candidate(a.op) && w != writer.end())
          parent[root(a.op.index())] = root(w->second);
    }
    std::map<std::size_t, int> by_root;
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
      if (!candidate(OpId(i))) continue;
      const auto [at, fresh] = by_root.emplace(root(i), static_cast<int>(found_.size()));
      if (fresh) {
        found_.emplace_back();
        found_.back().layer = graph_.ops()[i].layer;
      }
      segment_[i] = at->second;
      found_[static_cast<std::size_t>(at->second)].ops.push_back(OpId(i));
    }
  }

  bool inside(const Segment& s, OpId op) const {
    return segment_[op.index()] >= 0 && &found_[static_cast<std::size_t>(segment_[op.index()])] == &s;
  }
  bool own(const Segment& s, TensorId t) const {  // written by this segment alone
    if (graph_.tensor(t).persistent || graph_.is_input(t)) return false;
    for (const Access& a : graph_.accesses(t))
      if (a.writes && !inside(s, a.op)) return false;
    return true;
  }
  // Read by the segment and by backward ops, by nothing else.
  bool droppable(const Segment& s, TensorId t) const {
    if (!own(s, t)) return false;
    bool backward = false;
    for (const Access& a : graph_.accesses(t)) {
      if (inside(s, a.op)) continue;
      if (!runs_backward(graph_.op(a.op)) || graph_.op(a.op).memory == Tier::kPool) return false;
      backward = true;
    }
    return backward;
  }

  // Which ops to repeat, and before which; clears `again` where it can't be.
  void settle(Segment& s) {
    for (OpId op : s.ops)
      for (TensorId t : graph_.op(op).writes)
        if (droppable(s, t)) s.dropped.insert(t);
    if (s.dropped.empty()) return;
    for (TensorId t : s.dropped)
      for (const Access& a : graph_.accesses(t))
        if (!inside(s, a.op) && (s.before.is_none() || a.op < s.before)) s.before = a.op;
    std::set<TensorId> wanted = s.dropped;  // own tensors that have to be made again
    for (auto op = s.ops.rbegin(); op != s.ops.rend(); ++op) {
      const auto& writes = graph_.op(*op).writes;
      if (std::none_of(writes.begin(), writes.end(), [&](TensorId t) { return wanted.count(t) > 0; })) continue;
      if (!repeatable(s, *op)) {
        s.again.clear();
        return;
      }
      s.again.push_back(*op);
      for (TensorId t : graph_.op(*op).reads)
        if (own(s, t)) wanted.insert(t);
    }
    std::reverse(s.again.begin(), s.again.end());
  }

  bool repeatable(const Segment& s, OpId id) const {
    const Op& op = graph_.op(id);
    for (TensorId t : op.writes)
      if (!own(s, t)) return false;
    for (TensorId t : op.reads) {
      if (own(s, t)) continue;
      for (const Access& a : graph_.accesses(t))
        if (a.writes && a.op > id && a.op < s.before) return false;  // no longer what it was
    }
    return true;
  }

  const Graph& graph_;
  std::vector<int> segment_;  // per op: index into found_, or -1
  std::vector<Segment> found_;
  std::vector<int> layers_;
};

// The program with these segments repeated.
class Rewrite {
 public:
  Rewrite(const Graph& graph, const std::vector<Segment>& segments) : graph_(graph), spec_(spec_of(graph)) {
    std::multimap<OpId, const Segment*> at;
    for (const Segment& s : segments) at.emplace(s.before, &s);
    std::vector<std::map<TensorId, TensorId>> reads_instead(graph.ops().size());
    spec_.ops.clear();
    for (std::size_t i = 0; i < graph.ops().size(); ++i) {
      const auto [begin, end] = at.equal_range(OpId(i));
      for (auto s = begin; s != end; ++s) repeat(*s->second, reads_instead);
      new_id_.push_back(OpId(spec_.ops.size()));
      Op op = graph.ops()[i];
      renumber(op);
      for (TensorId& t : op.reads)
        if (const auto copy = reads_instead[i].find(t); copy != reads_instead[i].end()) t = copy->second;
      spec_.ops.push_back(std::move(op));
    }
  }

  Graph build() { return build_graph(std::move(spec_)); }

 private:
  void renumber(Op& op) const {
    for (OpId& after : op.after) after = new_id_[after.index()];
    if (op.known_after) op.known_after = new_id_[op.known_after->index()];
  }

  void repeat(const Segment& s, std::vector<std::map<TensorId, TensorId>>& reads_instead) {
    std::map<TensorId, TensorId> copy;
    // Behind what the waiting op follows anyway: an op of another engine must not run long before it.
    const OpId behind = load_point(graph_, s.before);
    for (OpId id : s.again) {
      Op op = graph_.op(id);
      op.name += "#again";
      op.phase = "recompute";
      op.after.clear();
      op.known_after.reset();
      if (!behind.is_none()) op.after.push_back(new_id_[behind.index()]);
      for (TensorId t : op.writes)
        if (copy.count(t) == 0) {
          copy[t] = TensorId(spec_.tensors.size());
          spec_.tensors.push_back(graph_.tensor(t));
          spec_.tensors.back().name += "#again";
        }
      for (auto* list : {&op.reads, &op.writes})
        for (TensorId& t : *list)
          if (const auto c = copy.find(t); c != copy.end()) t = c->second;
      spec_.ops.push_back(std::move(op));
    }
    for (TensorId t : s.dropped)
      for (const Access& a : graph_.accesses(t))
        if (a.op >= s.before) reads_instead[a.op.index()][t] = copy.at(t);
  }

  const Graph& graph_;
  GraphSpec spec_;
  std::vector<OpId> new_id_;
};

}  // namespace

int recomputable_layers(const Graph& graph) { return Segments(graph).layers(); }

Graph with_recompute(const Graph& graph, int layers, Recomputed which) {
  const Segments segments(graph);
  return Rewrite(graph, which == Recomputed::kFirst ? segments.first(layers) : segments.spread(layers)).build();
}

StaticPlan recompute(const Graph& graph, const Hardware& hardware, int iterations, const RecomputeOptions& options) {
  const Segments segments(graph);
  if (segments.layers() == 0)
    throw InfeasibleError(
        "recompute finds nothing that a layer's forward ops can make again for its backward ops: ops need `layer` and "
        "`phase`");
  const auto plan_with = [&](int layers) {
    StaticPlan made;
    if (layers > 0) made.graph = Rewrite(graph, segments.first(layers)).build();
    made.plan = plan_absences(made.graph ? *made.graph : graph, {}, iterations);
    return made;
  };
  if (options.layers > 0) return plan_with(options.layers);
  return fewest_that_fit(graph, hardware, iterations, segments.layers(), plan_with,
                         "recompute does not fit even with all layers computed again");
}

}  // namespace hyperoffload

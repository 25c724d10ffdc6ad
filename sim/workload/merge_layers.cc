#include <algorithm>

#include "sim/workload/trace_writer.h"

namespace hyperoffload {
namespace {

// Half-open range of ops that become one.
struct Run {
  std::size_t from = 0, to = 0;
};

bool belongs(const Op& a, const Op& b) {
  return a.engine == b.engine && a.layer == b.layer && a.phase == b.phase && a.memory == b.memory &&
         !a.collective && !b.collective && !a.duration && !b.duration;
}

// "mb.3.layers.7." of "mb.3.layers.7.qkv"; ops of different parts don't merge.
std::string part_of(const Op& op) {
  const std::size_t at = op.name.rfind("layers.");
  if (at == std::string::npos) return op.name.substr(0, op.name.find_last_of('.') + 1);
  return op.name.substr(0, op.name.find('.', at + 7) + 1);
}

std::vector<Run> find_runs(const std::vector<Op>& ops) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool joins = !runs.empty() && ops[i].layer >= 0 && belongs(ops[i - 1], ops[i]) &&
                       part_of(ops[i - 1]) == part_of(ops[i]) &&
                       !(ops[i].known_after && ops[i].known_after->index() >= runs.back().from);
    if (joins)
      runs.back().to = i + 1;
    else
      runs.push_back({i, i + 1});
  }
  return runs;
}

struct Life {
  std::size_t first = 0, last = 0;  // runs that access the tensor
  std::size_t born = 0, dies = 0;   // ops
  bool accessed = false;
};

class Merger {
 public:
  explicit Merger(GraphSpec spec) : spec_(std::move(spec)), runs_(find_runs(spec_.ops)) {
    run_of_.resize(spec_.ops.size());
    lives_.resize(spec_.tensors.size());
    for (std::size_t r = 0; r < runs_.size(); ++r)
      for (std::size_t i = runs_[r].from; i < runs_[r].to; ++i) {
        run_of_[i] = r;
        for (const auto* list : {&spec_.ops[i].reads, &spec_.ops[i].writes})
          for (TensorId t : *list) {
            Life& life = lives_[t.index()];
            if (!life.accessed) life = {r, r, i, i, true};
            life.last = r;
            life.dies = i;
          }
      }
  }

  GraphSpec merge() {
    std::vector<Op> merged;
    for (const Run& run : runs_)
      merged.push_back(run.to - run.from > 1 ? merged_op(run) : std::move(spec_.ops[run.from]));
    renumber(merged);
    spec_.ops = std::move(merged);
    return std::move(spec_);
  }

 private:
  // Only ops of one run of several touch it: it becomes workspace.
  bool inside(TensorId t) const {
    const Tensor& tensor = spec_.tensors[t.index()];
    const Life& life = lives_[t.index()];
    return life.accessed && !tensor.persistent && tensor.kind != TensorKind::kInput &&
           life.first == life.last && runs_[life.first].to - runs_[life.first].from > 1;
  }

  // Most bytes of inner tensors and workspace at any op of the run.
  Bytes peak_inside(const Run& run) const {
    Bytes live, peak;
    for (std::size_t i = run.from; i < run.to; ++i) {
      const Op& op = spec_.ops[i];
      std::vector<TensorId> touched = op.reads;
      touched.insert(touched.end(), op.writes.begin(), op.writes.end());
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      for (TensorId t : touched)
        if (inside(t) && lives_[t.index()].born == i) live += spec_.tensors[t.index()].bytes;
      peak = std::max(peak, live + op.workspace);
      for (TensorId t : touched)
        if (inside(t) && lives_[t.index()].dies == i) live -= spec_.tensors[t.index()].bytes;
    }
    return peak;
  }

  Op merged_op(const Run& run) {
    Op all = spec_.ops[run.from];
    all.workspace = peak_inside(run);
    all.name = part_of(all) + (all.phase.empty() ? "layer" : all.phase);
    all.kernel = "layer";
    all.reads.clear();
    all.writes.clear();
    all.after.clear();
    double flops = 0;
    Bytes hbm;
    for (std::size_t i = run.from; i < run.to; ++i) {
      const Op& op = spec_.ops[i];
      flops += op.flops.value_or(Flops(0)).value;
      hbm += op.hbm_bytes.value_or(Bytes(0));
      all.after.insert(all.after.end(), op.after.begin(), op.after.end());
      if (op.known_after) all.known_after = op.known_after;
      // What the run wrote before, it needn't read from outside.
      for (TensorId t : op.reads)
        if (!inside(t) && std::find(all.writes.begin(), all.writes.end(), t) == all.writes.end())
          all.reads.push_back(t);
      for (TensorId t : op.writes)
        if (!inside(t)) all.writes.push_back(t);
    }
    if (flops > 0) all.flops = Flops(flops);
    all.hbm_bytes = hbm;
    return all;
  }

  // Ops are numbered by run, tensors without those that became workspace; names stay unique.
  void renumber(std::vector<Op>& merged) {
    std::vector<TensorId> now(spec_.tensors.size());
    std::vector<Tensor> kept;
    for (std::size_t t = 0; t < spec_.tensors.size(); ++t) {
      if (inside(TensorId(t))) continue;
      now[t] = TensorId(kept.size());
      kept.push_back(spec_.tensors[t]);
    }
    std::map<std::string, int> uses;
    for (std::size_t i = 0; i < merged.size(); ++i) {
      Op& op = merged[i];
      for (auto* list : {&op.reads, &op.writes})
        for (TensorId& t : *list) t = now[t.index()];
      for (OpId& o : op.after) o = OpId(run_of_[o.index()]);
      op.after.erase(std::remove(op.after.begin(), op.after.end(), OpId(i)), op.after.end());
      if (op.known_after) op.known_after = OpId(run_of_[op.known_after->index()]);
      if (const int use = ++uses[op.name]; use > 1) op.name += "#" + std::to_string(use);
    }
    spec_.tensors = std::move(kept);
  }

  GraphSpec spec_;
  std::vector<Run> runs_;
  std::vector<std::size_t> run_of_;  // of each op
  std::vector<Life> lives_;          // of each tensor
};

}  // namespace

GraphSpec merge_layers(GraphSpec spec) { return Merger(std::move(spec)).merge(); }

}  // namespace hyperoffload

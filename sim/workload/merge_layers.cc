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

}  // namespace

GraphSpec merge_layers(GraphSpec spec) {
  const std::vector<Run> runs = find_runs(spec.ops);
  std::vector<std::size_t> run_of(spec.ops.size());
  std::vector<Life> lives(spec.tensors.size());
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (std::size_t i = runs[r].from; i < runs[r].to; ++i) {
      run_of[i] = r;
      for (const auto* list : {&spec.ops[i].reads, &spec.ops[i].writes})
        for (TensorId t : *list) {
          Life& life = lives[t.index()];
          if (!life.accessed) life = {r, r, i, i, true};
          life.last = r;
          life.dies = i;
        }
    }
  const auto inside = [&](TensorId t) {
    const Tensor& tensor = spec.tensors[t.index()];
    const Life& life = lives[t.index()];
    return life.accessed && !tensor.persistent && tensor.kind != TensorKind::kInput &&
           life.first == life.last;
  };

  std::vector<Op> merged;
  for (const Run& run : runs) {
    Op op = std::move(spec.ops[run.from]);
    Bytes live, peak;
    std::vector<TensorId> reads, writes;
    std::vector<bool> read_first;
    std::vector<TensorId> dying;
    double flops = op.flops.value_or(Flops(0)).value;
    Bytes hbm = op.hbm_bytes.value_or(Bytes(0));
    std::vector<OpId> after = op.after;
    for (std::size_t i = run.from; i < run.to; ++i) {
      const Op& part = i == run.from ? op : spec.ops[i];
      if (i > run.from) {
        flops += part.flops.value_or(Flops(0)).value;
        hbm += part.hbm_bytes.value_or(Bytes(0));
        after.insert(after.end(), part.after.begin(), part.after.end());
        if (part.known_after) op.known_after = part.known_after;
      }
      dying.clear();
      for (const auto* list : {&part.reads, &part.writes})
        for (TensorId t : *list) {
          if (!inside(t)) continue;
          if (lives[t.index()].born == i) {
            lives[t.index()].born = spec.ops.size();  // counted
            live += spec.tensors[t.index()].bytes;
          }
          if (lives[t.index()].dies == i && std::find(dying.begin(), dying.end(), t) == dying.end())
            dying.push_back(t);
        }
      peak = std::max(peak, live + part.workspace);
      for (TensorId t : dying) live -= spec.tensors[t.index()].bytes;
      // What the run wrote before, it needn't read from before.
      for (TensorId t : part.reads)
        if (!inside(t) && std::find(writes.begin(), writes.end(), t) == writes.end()) reads.push_back(t);
      for (TensorId t : part.writes)
        if (!inside(t)) writes.push_back(t);
    }
    if (run.to - run.from > 1) {
      op.name = part_of(op) + (op.phase.empty() ? "layer" : op.phase);
      op.kernel = "layer";
      op.reads = std::move(reads);
      op.writes = std::move(writes);
      op.workspace = peak;
      if (flops > 0) op.flops = Flops(flops);
      op.hbm_bytes = hbm;
      op.after = std::move(after);
    } else if (peak > op.workspace) {  // a tensor only this op touches stays a tensor
      op.workspace = op.workspace;
    }
    merged.push_back(std::move(op));
  }
  // Ids: ops by run, tensors without those that became workspace.
  for (Op& op : merged) {
    for (OpId& o : op.after) o = OpId(run_of[o.index()]);
    if (op.known_after) op.known_after = OpId(run_of[op.known_after->index()]);
  }
  std::vector<TensorId> now(spec.tensors.size());
  std::vector<Tensor> kept;
  for (std::size_t t = 0; t < spec.tensors.size(); ++t) {
    const Life& life = lives[t];
    const bool gone = inside(TensorId(t)) && runs[life.first].to - runs[life.first].from > 1;
    if (gone) continue;
    now[t] = TensorId(kept.size());
    kept.push_back(std::move(spec.tensors[t]));
  }
  std::map<std::string, int> uses;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    Op& op = merged[i];
    for (auto* list : {&op.reads, &op.writes})
      for (TensorId& t : *list) t = now[t.index()];
    op.after.erase(std::remove_if(op.after.begin(), op.after.end(), [&](OpId o) { return o.index() >= i; }),
                   op.after.end());
    const int use = uses[op.name]++;
    if (use > 0) op.name += "#" + std::to_string(use + 1);
  }
  spec.ops = std::move(merged);
  spec.tensors = std::move(kept);
  return spec;
}

}  // namespace hyperoffload

// Turns programs into the ops and tensors of one trace: names, tensor ids, engines, collectives.
//
// Names. A part's prefix is "" or "layers.3."; a pass's prefix ("mb.0.", "step.7.", ...) stands before it
// for ops and activations. Weights and caches are the model's: one tensor, whatever the pass.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/workload/program.h"

namespace hyperoffload {

// Where a program's values and weights are in the trace.
struct Binding {
  std::vector<TensorId> values;
  std::vector<TensorId> weights;
};

// What ops of one emission have in common.
struct Emission {
  std::string prefix;  // of op and activation names: "mb.0.layers.3."
  int layer = -1;
  std::string phase;
};

class TraceWriter {
 public:
  TraceWriter(const WorkloadSpec& spec, const RankPlace& place) : workload_(spec), place_(place) {}

  TensorId tensor(const std::string& name, Bytes bytes, TensorKind kind);
  TensorId tensor(const std::string& name, Bytes bytes, TensorKind kind, bool persistent);
  // One tensor a name: made at the first call.
  TensorId named(const std::string& name, Bytes bytes, TensorKind kind, bool persistent);
  Tensor& tensor(TensorId id) { return spec_.tensors[id.index()]; }
  OpId op(Op op, const std::string& engine = "compute");
  // On the comm engine, with its time where the workload gives a link.
  OpId collective(Op op, const Collective& what);
  OpId last_op() const { return OpId(spec_.ops.size() - 1); }
  // FLOPs the model asks for: in training three times the forward pass, without what is computed again.
  double model_flops() const;

  // Persistent weights of a part: "layers.3.q_proj"; the embedding table has one name everywhere.
  std::vector<TensorId> weights(const PartWeights& weights, const std::string& part);

  // The part's kernels in order. `input` stands for its input value.
  Binding forward(const Program& program, const std::string& part, const Emission& emission, TensorId input,
                  std::vector<TensorId> weights);
  // One kernel, its values bound; makes tensors for values it writes that have none.
  OpId kernel(const Program& program, const Kernel& kernel, const std::string& part, const Emission& emission,
              Binding& binding);

  Graph finish(const std::string& name, const std::string& meta_json);

 private:
  const WorkloadSpec& workload_;
  RankPlace place_;
  GraphSpec spec_;
  std::map<std::string, TensorId> named_;
};

// Seconds a collective takes by the alpha-beta model over a ring of `ranks`, each way `link.bandwidth`:
// all-reduce 2 (n-1)/n bytes and 2 (n-1) steps; all-gather, reduce-scatter, all-to-all half of it; send and
// recv the bytes and one step.
Seconds collective_time(const Collective& what, int ranks, const CollectiveLink& link);
int group_size(const std::string& group, const RankPlace& place);

// Merges the compute ops of one layer and phase that follow each other into one: FLOPs and HBM bytes add
// up, tensors nothing else touches become workspace (their highest sum at any op, the ops' own added).
GraphSpec merge_layers(GraphSpec spec);

}  // namespace hyperoffload

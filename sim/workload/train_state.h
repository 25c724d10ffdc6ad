// Training state of one rank: the weights of each part, their gradients, how they are sharded (ZeRO), and
// the collectives that keep replicas in step. Used by training.cc alone.
//
// Gradients are summed over the data-parallel replicas (group "dp": dp x cp ranks; experts: "edp"): with
// ZeRO 0 all-reduced in place; with 1 reduce-scattered once, after the last micro-batch; with 2 and 3 after
// each. A rank's shard of a tensor is an even part of its elements. With ZeRO 3 the weights are sharded
// too: a part's are gathered before each use, into buffers (kind other) that die with it.
#pragma once

#include "sim/workload/backward.h"
#include "sim/workload/generators.h"

namespace hyperoffload {

struct TrainedWeight {
  std::string name;  // in the trace
  std::int64_t elements = 0;
  std::int64_t shard_elements = 0;  // of them, this rank's
  Bytes bytes;
  bool expert = false;
  bool trained = true;
  int parts = 0;            // of this rank that read it: two for a tied table
  int contributions = 0;    // backward passes of those so far
  TensorId weight;          // whole on this rank, or its shard (ZeRO 3)
  WeightGradient gradient;  // of the whole; ZeRO 2 and 3: of the present micro-batch
  WeightGradient shard;     // of the shard, summed; none without sharding
};

// One part of the model: embedding, a layer, the head.
struct TrainedPart {
  std::string label;   // "embedding", "layers.3", "head"
  std::string prefix;  // of its names: "layers.3.", or nothing
  int layer = -1;
  const Program* program = nullptr;
  std::vector<TrainedWeight*> weights;  // one a weight of the program
};

class TrainState {
 public:
  TrainState(const WorkloadSpec& spec, const RankPlace& place, TraceWriter& writer);

  void add_part(TrainedPart& part);
  // Gradient slots for a backward pass over the part; makes their tensors.
  std::vector<WeightGradient*> gradients(TrainedPart& part, const std::string& prefix);
  // The weights a pass over the part reads; with ZeRO 3 gathered after `after` (none: at once).
  std::vector<TensorId> gather(const TrainedPart& part, const std::string& prefix, const std::string& phase,
                               OpId after);
  // Behind a part's backward pass; `last`: of its last micro-batch.
  void reduce(TrainedPart& part, const std::string& prefix, bool last);
  void reduce_rest();  // buckets not yet full
  void optimizer_step();
  bool gathers() const { return spec_.train.zero == 3; }
  DataType gradient_dtype() const { return spec_.train.gradient_dtype.value_or(spec_.dtype); }

 private:
  int replicas(bool expert) const { return expert ? place_.edp : place_.dp * place_.cp; }
  bool shards(bool expert) const { return spec_.train.zero >= 1 && replicas(expert) > 1; }
  void flush(bool expert);
  void reduce_now(const std::vector<TrainedWeight*>& weights, bool expert, const std::string& name);
  void update(const std::vector<TrainedWeight*>& weights, int index);

  const WorkloadSpec& spec_;
  const RankPlace& place_;
  TraceWriter& writer_;
  std::map<std::string, std::unique_ptr<TrainedWeight>> by_name_;
  std::vector<TrainedWeight*> order_;      // as first added
  std::vector<TrainedWeight*> bucket_[2];  // waiting to be reduced: dense, experts
  int buckets_ = 0;
};

}  // namespace hyperoffload
